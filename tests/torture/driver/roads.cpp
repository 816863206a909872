#include "torture/driver/roads.hpp"

#include <map>

namespace torture {
namespace {

using namespace holdfast::tests;

const std::map<std::string, Fate>& fates() {
    static const std::map<std::string, Fate> fates{
        {"lost_request", Fate::lose_request}, {"lost_reply", Fate::lose_reply}, {"silence", Fate::no_reply}};
    return fates;
}

}  // namespace

Roads::Roads(const std::vector<std::uint16_t>& servers) {
    for (const std::uint16_t port : servers) proxies_.push_back(std::make_unique<Proxy>(port));
}

std::vector<std::uint16_t> Roads::ports() const {
    std::vector<std::uint16_t> ports;
    for (const auto& proxy : proxies_) ports.push_back(proxy->port());
    return ports;
}

std::vector<std::string> Roads::faults() {
    std::vector<std::string> faults{"cut", "delay", "partition_there", "partition_back"};
    for (const auto& [name, fate] : fates()) faults.push_back(name);
    return faults;
}

void Roads::begin(const Choice& choice) {
    for (const auto& proxy : proxies_) {
        if (choice.fault == "cut") proxy->cut();
        if (choice.fault == "delay") proxy->become({.delay = choice.delay});
        if (choice.fault == "partition_there") proxy->become({.holds_requests = true});
        if (choice.fault == "partition_back") proxy->become({.holds_replies = true});
        if (fates().contains(choice.fault)) proxy->arrange(1, fates().at(choice.fault), choice.messages);
    }
}

void Roads::finish(const Choice& choice) {
    for (const auto& proxy : proxies_) {
        proxy->become({});
        if (!fates().contains(choice.fault)) continue;
        proxy->arrange(0, fates().at(choice.fault));
        // A client without an answer waits until its own timeout, unless the connection breaks.
        if (choice.fault == "silence") proxy->cut();
    }
}

}  // namespace torture
