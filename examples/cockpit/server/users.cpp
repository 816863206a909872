#include "users.hpp"

#include "holdfast/open.hpp"

#include <array>
#include <fstream>
#include <stdexcept>

namespace cockpit {
namespace {

struct Person {
    const char* name;
    bool may_edit;
    bool may_approve;
};

constexpr std::array people{Person{"ana", true, false}, Person{"ben", true, false}, Person{"olga", true, true},
                            Person{"vera", false, false}};

}  // namespace

std::map<std::string, User> users_in(const std::string& folder, std::uint16_t daemon,
                                     const holdfast::EditTimes& times) {
    std::map<std::string, User> users;
    for (const Person& person : people) {
        const std::string file = folder + "/" + person.name + ".token";
        User user{.may_edit = person.may_edit, .may_approve = person.may_approve};
        if (!(std::ifstream(file) >> user.token)) throw std::runtime_error("cannot read " + file);
        auto store = holdfast::open_store("http://" + user.token + "@127.0.0.1:" + std::to_string(daemon));
        if (!store) throw std::runtime_error(store.error().message);
        user.store = std::move(*store);
        user.guard = std::make_unique<holdfast::EditGuard>(*user.store, times);
        users.emplace(person.name, std::move(user));
    }
    return users;
}

}  // namespace cockpit
