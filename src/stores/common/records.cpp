#include "stores/common/records.hpp"

#include <fmt/format.h>

namespace holdfast::stores {

Finding examine_records(Store& store, const Clock& clock, Deadline deadline) {
    constexpr std::size_t page_size = 1000;
    std::size_t count = 0;
    for (std::string after;;) {
        const auto page = store.list({.with_free = true, .after = after, .limit = page_size}, deadline);
        if (!page && page.error().code != Errc::record_corrupt && deadline.passed(clock))
            return {"records", true, fmt::format("{} can be read; there was no time for more", count)};
        if (!page) return {"records", false, page.error().message};
        count += page->size();
        if (page->size() < page_size) break;
        after = page->back().name.text();
    }
    return {"records", true, count == 0 ? "none yet" : fmt::format("{}, and all can be read", count)};
}

}  // namespace holdfast::stores
