#include "torture/driver/options.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

namespace torture {
namespace {

std::vector<std::string> words(const std::string& list) {
    std::vector<std::string> found;
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');)
        if (!word.empty()) found.push_back(word);
    return found;
}

}  // namespace

std::string usage() {
    return "usage: torture [--store KIND|URL] [--faults kill,stop,…] [--workloads single,register,…] [--seconds N | "
           "--rounds "
           "N]\n               [--seed S] [--clients N] [--ttl-ms N] [--guard on|off] [--keep FILE]\n";
}

Options parse_options(int count, char** arguments) {
    Options options;
    const std::map<std::string, std::function<void(const std::string&)>> known{
        {"--store", [&](const std::string& text) { options.store = text; }},
        {"--faults", [&](const std::string& text) { options.faults = words(text); }},
        {"--workloads", [&](const std::string& text) { options.workloads = words(text); }},
        {"--seconds", [&](const std::string& text) { options.time = std::chrono::seconds{std::stoul(text)}; }},
        {"--rounds", [&](const std::string& text) { options.rounds = std::stoull(text); }},
        {"--seed", [&](const std::string& text) { options.seed = std::stoull(text); }},
        {"--clients", [&](const std::string& text) { options.clients = std::stoul(text); }},
        {"--ttl-ms", [&](const std::string& text) { options.ttl = std::chrono::milliseconds{std::stoul(text)}; }},
        {"--guard", [&](const std::string& text) { options.guard = text != "off"; }},
        {"--keep", [&](const std::string& text) { options.keep = text; }},
    };
    for (int i = 1; i < count; i += 2) {
        const auto option = known.find(arguments[i]);
        if (option == known.end()) throw std::invalid_argument(fmt::format("there is no option {}", arguments[i]));
        if (i + 1 == count) throw std::invalid_argument(fmt::format("{} needs a value", arguments[i]));
        option->second(arguments[i + 1]);
    }
    if (options.clients < 2) throw std::invalid_argument("one client has nobody to compete with");
    return options;
}

}  // namespace torture
