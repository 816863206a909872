#include "server/daemon.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cctype>
#include <csignal>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::server_test {
namespace {

constexpr int patience_ms = 30'000;

}  // namespace

cli_test::Document Answer::json() const {
    auto document = cli_test::Document::parse(body);
    EXPECT_TRUE(document) << "not one JSON document: " << status << ' ' << body;
    return document ? *document : *cli_test::Document::parse("{}");
}

Client::Client(std::uint16_t port, int receive_buffer) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) hang_up();
}

Client::Client(Client&& other) noexcept : socket_(std::exchange(other.socket_, -1)), input_(std::move(other.input_)) {}

Client::~Client() { hang_up(); }

void Client::hang_up() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
}

void Client::end_output() { shutdown(socket_, SHUT_WR); }

void Client::send_raw(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

void Client::send_request(std::string_view method, std::string_view target, std::string_view body,
                          const Headers& headers) {
    std::string text = fmt::format("{} {} HTTP/1.1\r\n", method, target);
    if (!headers.contains("Host")) text += "Host: localhost\r\n";
    for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
    if (!body.empty()) text += fmt::format("Content-Length: {}\r\n", body.size());
    send_raw(text + "\r\n" + std::string(body));
}

Answer Client::call(std::string_view method, std::string_view target, std::string_view body, const Headers& headers) {
    send_request(method, target, body, headers);
    return read_answer();
}

/// False at the end of the input.
bool Client::receive() {
    pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
    if (socket_ < 0) return false;
    if (poll(&wait, 1, patience_ms) <= 0) {
        ADD_FAILURE() << "no answer in time";
        return false;
    }
    char bytes[4096];
    const ssize_t size = recv(socket_, bytes, sizeof bytes, 0);
    if (size <= 0) return false;
    input_.append(bytes, static_cast<std::size_t>(size));
    return true;
}

std::optional<std::string> Client::line() {
    std::size_t end = 0;
    while ((end = input_.find("\r\n")) == std::string::npos)
        if (!receive()) return std::nullopt;
    std::string text = input_.substr(0, end);
    input_.erase(0, end + 2);
    return text;
}

Answer Client::read_head() {
    Answer answer;
    const auto first = line();
    if (!first || first->size() < 12) return answer;
    answer.status = std::stoi(first->substr(9, 3));
    for (auto field = line(); field && !field->empty(); field = line()) {
        const auto colon = field->find(':');
        std::string name = field->substr(0, colon);
        for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        answer.headers[name] = field->substr(std::min(colon + 2, field->size()));
    }
    return answer;
}

Answer Client::read_answer() {
    Answer answer = read_head();
    if (answer.status == 100) answer = read_head();
    if (answer.headers.contains("transfer-encoding"))
        for (std::string chunk = read_chunk(); !chunk.empty(); chunk = read_chunk()) answer.body += chunk;
    const auto length = answer.headers.find("content-length");
    if (length == answer.headers.end()) return answer;
    const std::size_t size = std::stoul(length->second);
    while (input_.size() < size && receive()) continue;
    answer.body = input_.substr(0, size);
    input_.erase(0, size);
    return answer;
}

std::string Client::read_chunk() {
    const auto size_line = line();
    if (!size_line || size_line->empty()) return "";
    const std::size_t size = std::stoul(*size_line, nullptr, 16);
    while (input_.size() < size + 2 && receive()) continue;
    std::string chunk = input_.substr(0, size);
    input_.erase(0, size + 2);
    return chunk;
}

std::string Client::read_to(std::string_view mark) {
    while (input_.find(mark) == std::string::npos)
        if (!receive()) return std::exchange(input_, {});
    const std::size_t size = input_.find(mark) + mark.size();
    std::string text = input_.substr(0, size);
    input_.erase(0, size);
    return text;
}

bool Client::is_closed() {
    if (socket_ < 0) return true;
    while (receive()) input_.clear();
    return true;
}

bool Client::is_silent_for(std::chrono::milliseconds time) {
    pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
    return input_.empty() && poll(&wait, 1, static_cast<int>(time.count())) == 0;
}

Daemon::Daemon(const cli_test::Args& args, const std::string& store) : args_(args), store_(store) { start(0); }

void Daemon::start(std::uint16_t port) {
    const auto port_file = box.root / fmt::format("port-{}", starts_++);
    cli_test::Args all{"serve",       "--store",         store_, "--listen", fmt::format("127.0.0.1:{}", port),
                       "--port-file", port_file.string()};
    all.insert(all.end(), args_.begin(), args_.end());
    running_.emplace(box.start(all));
    if (!cli_test::eventually([&] { return std::filesystem::exists(port_file); })) {
        ADD_FAILURE() << "the daemon does not listen: " << running_->err();
        return;
    }
    port_ = static_cast<std::uint16_t>(std::stoi(box.files().at(port_file.filename().string())));
}

Answer Daemon::post(std::string_view target, std::string_view body) const {
    return client().call("POST", target, body);
}

Answer Daemon::get(std::string_view target) const { return client().call("GET", target); }

cli_test::Ended Daemon::stop() {
    running_->signal(SIGTERM);
    return running_->wait();
}

void Daemon::kill_and_restart() {
    running_->signal(SIGKILL);
    (void)running_->wait();
    running_.reset();
    start(port_);
}

}  // namespace holdfast::server_test
