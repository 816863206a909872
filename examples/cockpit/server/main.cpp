// The sample application: a web server for a team that edits dashboards, beside a Holdfast daemon that keeps its locks.
#include "api.hpp"
#include "http.hpp"

#include <charconv>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace {

constexpr auto usage =
    "usage: cockpit --daemon PORT --database FILE --tokens FOLDER --web FOLDER [--port N] [--port-file FILE]\n"
    "               [--stale-after-ms N] [--renew-every-ms N] [--propagation-ms N]\n";

std::int64_t number_of(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < 0)
        throw std::runtime_error(std::string(text) + " is not a number");
    return number;
}

std::uint16_t port_of(std::string_view text) {
    const auto number = number_of(text);
    if (number > 65535) throw std::runtime_error(std::string(text) + " is not a port");
    return static_cast<std::uint16_t>(number);
}

/// The file of the port, so that whoever starts this knows when it listens, and where.
cockpit::Settings settings_in(int count, char** words, std::string& port_file) {
    cockpit::Settings settings;
    using Set = std::function<void(const std::string& value)>;
    const auto text = [](auto& into) -> Set { return [&into](const std::string& value) { into = value; }; };
    const auto port = [](std::uint16_t& into) -> Set { return [&into](const std::string& v) { into = port_of(v); }; };
    const auto time = [](std::chrono::milliseconds& into) -> Set {
        return [&into](const std::string& value) { into = std::chrono::milliseconds{number_of(value)}; };
    };
    const std::map<std::string, Set> options{{"--daemon", port(settings.daemon)},
                                             {"--port", port(settings.port)},
                                             {"--port-file", text(port_file)},
                                             {"--database", text(settings.database)},
                                             {"--tokens", text(settings.tokens)},
                                             {"--web", text(settings.web)},
                                             {"--stale-after-ms", time(settings.times.stale_after)},
                                             {"--renew-every-ms", time(settings.times.renew_every)},
                                             {"--propagation-ms", time(settings.times.propagation)}};
    for (int i = 1; i + 1 < count; i += 2) {
        const auto option = options.find(words[i]);
        if (option == options.end()) throw std::runtime_error(std::string("unknown option ") + words[i]);
        option->second(words[i + 1]);
    }
    if (settings.daemon == 0 || settings.database.empty() || settings.tokens.empty() || settings.web.empty())
        throw std::runtime_error("--daemon, --database, --tokens and --web are needed");
    return settings;
}

void serve(cockpit::Settings settings, const std::string& port_file, const sigset_t& ends) {
    std::unique_ptr<cockpit::Api> api;
    cockpit::HttpServer server(
        settings.port, [&](const cockpit::Request& request) { return api->answer(request); },
        [&](const cockpit::Request& request, int socket) { return api->relay(request, socket); });
    settings.port = server.port();
    api = std::make_unique<cockpit::Api>(settings);

    const std::jthread waits([&] {
        int signal = 0;
        sigwait(&ends, &signal);
        server.stop();
    });
    std::cout << "listening on http://127.0.0.1:" << server.port() << std::endl;
    if (!port_file.empty()) {
        std::ofstream(port_file + ".new") << server.port() << '\n';
        std::filesystem::rename(port_file + ".new", port_file);
    }
    server.run();
}

}  // namespace

int main(int count, char** words) {
    // Taken by one thread; all others, which inherit this, never see them.
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    try {
        std::string port_file;
        const auto settings = settings_in(count, words, port_file);
        serve(settings, port_file, ends);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "cockpit: " << error.what() << '\n' << usage;
        return 64;
    }
}
