// Goal: a connection reaches the server that is there, notices when it is gone, and lets the server notice that we are
// gone. Method: the part itself, with a real server and a port where nobody ever answers.
#include "base/fd.hpp"
#include "stores/postgres/connection.hpp"
#include "stores/postgres_fixture.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using namespace stores::postgres;

/// Somebody has this port, and no connection to it comes about: what asks for one is not answered at all.
class SilentPort {
public:
    SilentPort() {
        sockaddr_in place{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        socklen_t size = sizeof place;
        auto* const address = reinterpret_cast<sockaddr*>(&place);
        if (bind(listening_.get(), address, size) != 0 || listen(listening_.get(), 0) != 0 ||
            getsockname(listening_.get(), address, &size) != 0)
            throw std::runtime_error("no port");
        port_ = ntohs(place.sin_port);
        // The first connections fill the backlog; as soon as one is not accepted, no other is.
        for (int i = 0; i < 64; ++i) {
            const base::Fd& next =
                waiting_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            connect(next.get(), address, size);
            pollfd connected{next.get(), POLLOUT, 0};
            if (poll(&connected, 1, 100) == 0) return;
        }
        throw std::runtime_error("everybody is let in");
    }
    [[nodiscard]] std::uint16_t port() const { return port_; }

private:
    base::Fd listening_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::vector<base::Fd> waiting_{};
    std::uint16_t port_ = 0;
};

class PostgresConnection : public PostgresFixture {
protected:
    [[nodiscard]] Settings settings(const std::string& hosts, const std::string& parameters = "") const {
        return must(settings_of(
            must(base::Url::parse(fmt::format("postgres://{}:{}@{}/postgres?application_name={}{}", server_user_name,
                                              server_password, hosts, schema_, parameters)))));
    }
    [[nodiscard]] std::string here() const { return "127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] int sessions() {
        return std::stoi(by_hand_("SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + schema_ + "'"));
    }
    /// Ends all of them, and they have ended when this returns.
    void end_sessions() {
        by_hand_("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = '" + schema_ +
                 "'");
    }
    [[nodiscard]] static int user_timeout(const Connection& connection) {
        int time = 0;
        socklen_t size = sizeof time;
        getsockopt(connection.socket(), IPPROTO_TCP, TCP_USER_TIMEOUT, &time, &size);
        return time;
    }
};

// Without its turn for the next, a call would end with its time, although a server is there.
TEST_F(PostgresConnection, OfSeveralServersASilentOneUsesUpOnlyItsShareOfTheTime) {
    const SilentPort silent;
    const Settings both = settings(fmt::format("127.0.0.1:{},{}", silent.port(), here()));
    const auto connection = must(connect(both, base::CallBudget(3s)));
    EXPECT_TRUE(connection->is_usable());
    EXPECT_EQ(user_timeout(*connection), 5000) << "what it may take to connect is not what it may take to talk";
    EXPECT_EQ(user_timeout(*must(connect(settings(here(), "&tcp_user_timeout=7000"), base::CallBudget(20s)))), 7000);
}

TEST_F(PostgresConnection, AServerThatNeverAnswersEndsTheAttemptWithItsTime) {
    const SilentPort silent;
    EXPECT_THAT(connect(settings("127.0.0.1:" + std::to_string(silent.port())), base::CallBudget(100ms)),
                RefusedWith(Errc::store_unavailable));
}

// A client that does not notice would send on a closed connection, and not know whether the request arrived.
TEST_F(PostgresConnection, ASessionThatTheServerEndedIsGoneBeforeAnythingIsSaid) {
    for (int round = 0; round < 10; ++round) {
        const auto connection = must(connect(settings(here()), base::CallBudget(20s)));
        EXPECT_TRUE(connection->is_alive());
        end_sessions();
        EXPECT_FALSE(connection->is_alive());
        EXPECT_FALSE(connection->is_usable());
    }
}

// A client whose host has vanished keeps what its session keeps until the server notices.
TEST_F(PostgresConnection, ASessionOfOursLetsTheServerNoticeSoonThatWeAreGone) {
    const auto connection = must(connect(settings(here()), base::CallBudget(20s)));
    must(connection->run(notice_dead_peers(), base::CallBudget(20s)).fault ? Result<void>(fail(Errc::usage, "refused"))
                                                                           : Result<void>());
    for (const char* name :
         {"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"}) {
        const Trip asked = connection->run(
            Statement("SELECT setting::int8 FROM pg_settings WHERE name = $1").bind(std::string_view(name)),
            base::CallBudget(20s));
        ASSERT_FALSE(asked.fault) << asked.fault->message;
        EXPECT_GT(asked.answers.front().number(0, 0), 0) << name;
        EXPECT_LE(asked.answers.front().number(0, 0), 10'000) << name;
    }
}

}  // namespace
}  // namespace holdfast::tests
