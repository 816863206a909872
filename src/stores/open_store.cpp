#include "stores/open_store.hpp"

#include "base/url.hpp"
#include "holdfast/open.hpp"
#include "stores/file/file_store.hpp"
#include "stores/memory/memory_store.hpp"
#include "stores/module.hpp"
#include "stores/sqlite/sqlite_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast {
namespace {

struct Backend {
    std::string_view scheme;
    Result<std::unique_ptr<Store>> (*open)(base::Url url, const Clock& clock);  ///< Null for a module.
    std::string_view (*schema)();
    std::string_view module = {};
    bool is_alias = false;
};

std::string_view no_schema() { return ""; }

constexpr Backend module(std::string_view scheme, std::string_view name) {
    return {scheme, nullptr, nullptr, name, scheme != name};
}

/// The only list of stores.
constexpr std::array backends{
    Backend{"file", stores::open_file_store, no_schema},
    Backend{"sqlite", stores::open_sqlite_store, stores::sqlite_schema},
    module("postgres", "postgres"),
    module("postgresql", "postgres"),
    module("mysql", "mysql"),
    module("mariadb", "mysql"),
    module("redis", "redis"),
    module("rediss", "redis"),
    module("etcd", "etcd"),
    module("http", "http"),
    module("https", "http"),
    Backend{"memory", stores::open_memory_store, no_schema},
};

const Backend* backend_of(std::string_view scheme) {
    const auto* found = std::ranges::find(backends, scheme, &Backend::scheme);
    return found == backends.end() ? nullptr : found;
}

/// `sqlite://var/x.db` would be a server called var. As a path it would depend on the working folder, which is hardly
/// meant.
std::unexpected<Error> two_slashes(const base::Url& url) {
    // The text before an @ could be a password.
    const bool showable = !url.place.empty() && url.place.find('@') == std::string::npos;
    const std::string path = showable ? url.place : "var/lib/locks";
    return fail(Errc::usage,
                fmt::format("a {0} store has no server, so two slashes are one too many or one too few; write "
                            "{0}:///{1} for an absolute path, or {0}:{1} for one in the working folder",
                            url.scheme, path));
}

struct Address {
    Backend backend;
    base::Url url;
};

Result<Address> find(std::string_view text) {
    auto url = base::Url::parse(text);
    if (!url) return std::unexpected(url.error());
    const Backend* const backend = backend_of(url->scheme);
    if (backend == nullptr)
        return fail(Errc::usage, fmt::format("no store is called \"{}\"; this build knows {}", url->scheme,
                                             fmt::join(known_schemes(), ", ")));
    if (backend->module.empty() && url->has_authority) return two_slashes(*url);
    Backend found = *backend;
    if (!found.module.empty()) {
        const auto loaded = stores::load_module(found.module);
        if (!loaded) return std::unexpected(loaded.error());
        found.open = (*loaded)->open;
        found.schema = (*loaded)->schema;
    }
    return Address{found, std::move(*url)};
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(std::string_view url, const Clock& clock) {
    auto address = find(url);
    if (!address) return std::unexpected(address.error());
    auto allow_lossy = address->url.take_switch("allow_lossy", false);
    if (!allow_lossy) return std::unexpected(allow_lossy.error());

    auto store = address->backend.open(std::move(address->url), clock);
    if (!store) return store;
    const StoreInfo info = (*store)->info();
    if (info.grade == Grade::c && !*allow_lossy)
        return fail(Errc::store_unsafe,
                    fmt::format("{} can lose a granted lock: {}; choose another store, or accept it "
                                "with ?allow_lossy=on",
                                info.url, fmt::join(info.reasons, "; ")));
    return store;
}

bool has_known_scheme(std::string_view url) {
    const auto colon = url.find(':');
    return colon != std::string_view::npos && backend_of(url.substr(0, colon)) != nullptr;
}

bool stores::is_module(std::string_view url) {
    const auto parsed = base::Url::parse(url);
    const Backend* const backend = parsed ? backend_of(parsed->scheme) : nullptr;
    return backend != nullptr && !backend->module.empty();
}

std::vector<std::string_view> known_schemes() {
    std::vector<std::string_view> schemes;
    schemes.reserve(backends.size());
    for (const Backend& backend : backends)
        if (!backend.is_alias) schemes.push_back(backend.scheme);
    return schemes;
}

Result<std::string_view> schema_of(std::string_view url) {
    const auto address = find(url);
    if (!address) return std::unexpected(address.error());
    return address->backend.schema();
}

}  // namespace holdfast
