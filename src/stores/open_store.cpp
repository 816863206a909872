#include "stores/open_store.hpp"

#include "base/url.hpp"
#include "holdfast/open.hpp"
#include "stores/file/file_store.hpp"
#include "stores/memory/memory_store.hpp"
#include "stores/module.hpp"
#include "stores/opened_in_time.hpp"
#include "stores/sqlite/sqlite_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// A program can link modules, and does not have to: a weak reference is null then.
extern "C" {
[[gnu::weak]] const holdfast::base::ModuleHead* holdfast_store_module_postgres();
[[gnu::weak]] const holdfast::base::ModuleHead* holdfast_store_module_mysql();
[[gnu::weak]] const holdfast::base::ModuleHead* holdfast_store_module_redis();
[[gnu::weak]] const holdfast::base::ModuleHead* holdfast_store_module_etcd();
[[gnu::weak]] const holdfast::base::ModuleHead* holdfast_store_module_http();
}

namespace holdfast {
namespace {

struct Backend {
    std::string_view scheme;
    Result<std::unique_ptr<Store>> (*open)(base::Url url, const Clock& clock);  ///< Null for a module.
    std::string_view (*schema)();
    std::string_view module = {};
    base::ModuleEntry linked = nullptr;  ///< Of a module. Null unless the program links it.
    bool is_alias = false;
};

std::string_view no_schema() { return ""; }

constexpr Backend module(std::string_view scheme, std::string_view name, base::ModuleEntry linked) {
    return {scheme, nullptr, nullptr, name, linked, scheme != name};
}

/// The only list of stores.
constexpr std::array backends{
    Backend{"file", stores::open_file_store, no_schema},
    Backend{"sqlite", stores::open_sqlite_store, stores::sqlite_schema},
    module("postgres", "postgres", holdfast_store_module_postgres),
    module("postgresql", "postgres", holdfast_store_module_postgres),
    module("mysql", "mysql", holdfast_store_module_mysql),
    module("mariadb", "mysql", holdfast_store_module_mysql),
    module("redis", "redis", holdfast_store_module_redis),
    module("rediss", "redis", holdfast_store_module_redis),
    module("etcd", "etcd", holdfast_store_module_etcd),
    module("http", "http", holdfast_store_module_http),
    module("https", "http", holdfast_store_module_http),
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

Result<const stores::Module*> find_module(const Backend& backend) {
    if (backend.linked != nullptr) return static_cast<const stores::Module*>(backend.linked());
    const auto loaded = base::load_module("store", backend.module);
    if (!loaded) return std::unexpected(loaded.error());
    return static_cast<const stores::Module*>(*loaded);
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
        const auto module = find_module(found);
        if (!module) return std::unexpected(module.error());
        found.open = (*module)->open;
        found.schema = (*module)->schema;
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

Result<std::unique_ptr<Store>> open_store(std::string_view url, const OpenOptions& options) {
    return stores::opened_in_time(url, options);
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
