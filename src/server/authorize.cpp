#include "server/authorize.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace holdfast::server {
namespace {

std::vector<std::string> values_of(const HttpRequest& request, std::string_view name) {
    std::vector<std::string> values;
    for (const auto& [header, value] : request.headers)
        if (header == name) values.push_back(value);
    return values;
}

}  // namespace

Result<std::unique_ptr<Authorizer>> Authorizer::create(const ServeOptions& options, const Clock& clock) {
    access::AuthenticatorOptions how{.token_file = options.token_file, .trust_header = options.trust_header};
    for (const std::string& text : options.trust_from) {
        auto network = access::Network::parse(text);
        if (!network) return fail(Errc::usage, "--trust-from: " + network.error().message);
        how.trust_from.push_back(*network);
    }
    how.transport = options.tls_cert.empty() ? access::Transport::plain : access::Transport::tls;
    auto door = access::Authenticator::create(std::move(how), clock);
    if (!door) return std::unexpected(door.error());
    if (auto problem = (*door)->problem()) return fail(Errc::config, "--token-file: " + problem->message);
    return std::unique_ptr<Authorizer>(new Authorizer(std::move(*door)));
}

Result<Identity> Authorizer::authorize(const HttpRequest& request) {
    access::Shown shown{.address = request.peer,
                        .authorization = values_of(request, "authorization"),
                        .cookie = values_of(request, "cookie")};
    if (!door_->trust_header().empty()) shown.trusted = values_of(request, door_->trust_header());
    return door_->identify(shown);
}

Result<void> Authorizer::expect_no_forgery(const HttpRequest& request, const Identity& who) {
    const bool only_reads = request.method == "GET" || request.method == "HEAD";
    if (only_reads || !access::needs_csrf_header(who) || request.header("holdfast-csrf") == "1") return {};
    return fail(Errc::denied,
                "a change that a browser's cookie or a proxy vouches for needs the header Holdfast-Csrf: 1");
}

Result<void> permit(const Identity& who, Role needed, const LockName& name) {
    if (who.role_for(name) >= needed) return {};
    return fail(Errc::denied, fmt::format("this needs the role {} for {}", name_of(needed), printable(name.text())));
}

Result<void> permit(const Identity& who, const Request& request) {
    // Who may answer as an operator depends on who asked: `permit_answer`.
    const auto* const answer = std::get_if<Answer>(&request);
    const Role least = access::row_of(Endpoint::override_withdraw).needs;
    if (answer && !answer->by) return permit(who, least, answer->name);
    return access::permitted(who, request);
}

Result<void> permit_answer(const Identity& who, Answer& answer, Store& store, Deadline deadline) {
    if (answer.by) return {};
    const auto lock = store.inspect(answer.name, deadline);
    if (!lock) return std::unexpected(lock.error());
    const auto& question = lock->override_request;
    // The id of a question is never used again, so the answer goes to the same asker that was looked up here.
    if (question && question->lock_id == answer.ask_id) return access::permitted_answer(who, *question, answer);
    return access::permitted(who, answer);
}

}  // namespace holdfast::server
