// Small texts that people and stores hand in: names, durations, leases, identities, the JSON of a table.
#include "fuzz/target.hpp"
#include "holdfast/lease.hpp"
#include "stores/file/name_encoding.hpp"
#include "stores/sqlite/json_map.hpp"
#include "values/text.hpp"

namespace holdfast::fuzz {
namespace {

void lock_name(std::string_view text) {
    const auto name = LockName::parse(text);
    if (!name) return require(name.error().code == Errc::name_invalid, "a name is refused with another code");
    require(name->text() == text, "a name was changed");
    require(is_utf8(text) && !has_control(text) && text.size() <= LockName::max_bytes, "a name that no lock can have");
    const std::string folder = stores::file::folder_name(*name);
    require(stores::file::is_folder_name(folder) && folder.size() <= 255, "a folder name that is not one of ours");
    // The dot of the mark before it keeps every folder apart from . and .. and is the only one.
    require(folder.find_first_of("./", 2) == std::string::npos, "a folder name that leaves its place");
    const auto read = stores::file::name_in(folder);
    require(!read || *read == text, "a folder name that says another name");
}

void duration(std::string_view text) {
    const auto time = parse_duration(text);
    if (!time) return require(time.error().code == Errc::usage, "a duration is refused with another code");
    require(time->count() >= 0, "a negative duration");
    require(!to_words(*time).empty(), "a duration without words");
    const auto again = parse_duration(std::to_string(time->count()) + "ms");
    require(!again || *again == *time, "a duration in milliseconds is another one");
}

void identity(std::string_view text) {
    if (const auto lock_id = LockId::parse(text)) {
        const auto again = LockId::parse(lock_id->text());
        require(again && *again == *lock_id, "a lock_id does not read what it wrote");
    }
    if (const auto as = Credentials::parse(text)) {
        const auto again = Credentials::parse(as->reveal());
        require(again && again->reveal() == as->reveal(), "a lease does not read what it wrote");
    }
}

void table_json(std::string_view text) {
    if (const auto map = stores::sqlite::from_json(text))
        require(stores::sqlite::to_json(*map) == text, "two forms of one map");
}

void run(Bytes bytes) {
    const std::uint8_t choice = take_choice(bytes);
    const std::string_view text = text_of(bytes);
    require(!has_control(printable(text)), "printable text with a control character");
    switch (choice % 4) {
        case 0: return lock_name(text);
        case 1: return duration(text);
        case 2: return identity(text);
        default: return table_json(text);
    }
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
