// The gate in front of an upstream, with a real nginx: only requests with the current token reach the upstream, and
// none do while nobody can tell.
#include "base/fd.hpp"
#include "server/guarded.hpp"
#include "support/isolation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace holdfast::server_test {
namespace {

using testing::HasSubstr;

/// As docs/reference/http.md shows it, with sockets in the file system, so that no port is needed.
std::string configuration(const std::string& folder, std::uint16_t daemon, const std::string& token) {
    return fmt::format(R"(daemon off;
master_process off;
pid {0}/nginx.pid;
error_log {0}/error.log;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {0}/body;
  proxy_temp_path {0}/proxy;
  fastcgi_temp_path {0}/fastcgi;
  uwsgi_temp_path {0}/uwsgi;
  scgi_temp_path {0}/scgi;
  server {{
    listen unix:{0}/front;
    location /deploy/ {{
      auth_request /gate;
      proxy_pass http://unix:{0}/upstream:;
    }}
    location = /gate {{
      internal;
      proxy_pass http://127.0.0.1:{1}/v1/check?name=deploy%2Fprod&deny=403;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Host localhost;
      proxy_set_header Authorization "Bearer {2}";
      proxy_set_header Cookie "";
      proxy_set_header Holdfast-Token $http_holdfast_token;
    }}
  }}
  server {{
    listen unix:{0}/upstream;
    location / {{ return 200 "written\n"; }}
  }}
}}
)",
                       folder, daemon, token);
}

class Gate : public testing::Test {
protected:
    void SetUp() override {
        if (std::system("command -v nginx >/dev/null || test -x /usr/sbin/nginx") != 0)
            GTEST_SKIP() << tests::not_here << "nginx is not installed";
        const std::string folder = folder_.path().string();
        // An nginx that root starts works as another user, which has to reach its files.
        std::filesystem::permissions(folder, std::filesystem::perms{0755});
        box_.write(folder_.path() / "nginx.conf",
                   configuration(folder, guarded_.daemon.port(), guarded_.token("nginx", {"viewer:deploy"})));
        box_.environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin";
        nginx_.emplace(box_.start_program(
            {"/bin/sh", "-c", fmt::format("exec nginx -p {0} -c {0}/nginx.conf -e {0}/error.log", folder)}));
        ASSERT_TRUE(cli_test::eventually([&] { return send("/", "") != 0; })) << nginx_->err();
    }

    /// The status of a request with this token; 0 if nobody answers.
    [[nodiscard]] int send(const std::string& path, const std::string& token) const {
        const base::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string front = (folder_.path() / "front").string();
        std::memcpy(address.sun_path, front.c_str(), front.size());
        if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 0;
        const std::string body = "new state";
        const std::string request =
            fmt::format("PUT {} HTTP/1.1\r\nHost: app\r\nConnection: close\r\nContent-Length: {}\r\n{}\r\n{}", path,
                        body.size(), token.empty() ? "" : fmt::format("Holdfast-Token: {}\r\n", token), body);
        if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return 0;
        std::string answer;
        std::array<char, 4096> part{};
        pollfd wait{.fd = socket.get(), .events = POLLIN, .revents = 0};
        for (ssize_t got = 1; got > 0 && poll(&wait, 1, 60'000) == 1;) {
            got = recv(socket.get(), part.data(), part.size(), 0);
            if (got > 0) answer.append(part.data(), static_cast<std::size_t>(got));
        }
        const int status = answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
        const bool is_written = answer.find("written\n") != std::string::npos;
        EXPECT_EQ(is_written, status == 200) << answer;
        return status;
    }
    [[nodiscard]] cli_test::Document acquire() {
        return guarded_.post(root_, "/v1/acquire", R"({"name":"deploy/prod","holder":"x","ttl_ms":600000})").json();
    }

    tests::TempFolder folder_{};
    Guarded guarded_{};
    const std::string root_ = guarded_.token("root", {"admin"});
    cli_test::Sandbox box_{};
    std::optional<cli_test::Running> nginx_{};
};

TEST_F(Gate, OnlyTheCurrentTokenReachesTheUpstream) {
    EXPECT_EQ(send("/deploy/x", "1"), 403) << "nobody holds the lock";
    const auto first = acquire();
    const std::string old = std::to_string(first.number("/token"));
    EXPECT_EQ(send("/deploy/x", old), 200);
    for (const char* token : {"", "0", "1", "x", "9007199254740993", "-1", "1&name=other"})
        EXPECT_EQ(send("/deploy/x", token), 403) << token;
    ASSERT_EQ(guarded_
                  .post(root_, "/v1/unlock",
                        fmt::format(R"({{"name":"deploy/prod","lock_id":"{}"}})", first.text("/lock_id")))
                  .status,
              200);
    EXPECT_EQ(send("/deploy/x", old), 403) << "a stale writer";
    const std::string current = std::to_string(acquire().number("/token"));
    EXPECT_EQ(send("/deploy/x", old), 403);
    EXPECT_EQ(send("/deploy/x", current), 200);
}

TEST_F(Gate, IsClosedWhileNobodyCanTell) {
    const std::string token = std::to_string(acquire().number("/token"));
    ASSERT_EQ(send("/deploy/x", token), 200);
    EXPECT_EQ(guarded_.daemon.stop().status, 0);
    EXPECT_GE(send("/deploy/x", token), 500);
}

}  // namespace
}  // namespace holdfast::server_test
