#include "torture/client/guarded_register.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace torture {
namespace {

/// All records have this size, so that the last one is found without an index.
constexpr std::size_t record_size = 256;

[[noreturn]] void give_up(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

/// Excludes all other processes. A lock of the open file, not of the process, so that it goes with the descriptor.
class GuardedRegister::Turn {
public:
    explicit Turn(int fd) : fd_(fd) { set(F_WRLCK); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { set(F_UNLCK); }

private:
    void set(short type) const {
        struct flock all{};
        all.l_type = type;
        while (fcntl(fd_, F_OFD_SETLKW, &all) != 0)
            if (errno != EINTR) std::abort();
    }
    int fd_;
};

GuardedRegister::GuardedRegister(const std::string& file, std::string lock, Guard guard)
    : file_(open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600)), lock_(std::move(lock)), guard_(guard) {
    if (!file_) give_up("open the register");
}

GuardedRegister::Last GuardedRegister::last() const {
    const off_t size = lseek(file_.get(), 0, SEEK_END);
    if (size == 0) return {};
    std::array<char, record_size + 1> record{};
    if (pread(file_.get(), record.data(), record_size, size - static_cast<off_t>(record_size)) != record_size)
        give_up("read the register");
    Last last;
    std::array<char, 64> id{};
    if (std::sscanf(record.data(), R"({"e":"journal","v":%)" SCNu64 R"(,"tok":%)" SCNu64 R"(,"id":"%63[^"]")",
                    &last.version, &last.token, id.data()) != 3)
        throw std::runtime_error("the register's last record cannot be read");
    last.id = id.data();
    return last;
}

void GuardedRegister::append(std::string_view kind, const Last& next, std::uint64_t number, std::uint64_t base) {
    std::string record =
        fmt::format(R"({{"e":"journal","v":{},"tok":{},"id":"{}","l":"{}","kind":"{}","n":{},"base":{}}})",
                    next.version, next.token, next.id, lock_, kind, number, base);
    record.resize(record_size - 1, ' ');
    record += '\n';
    if (::write(file_.get(), record.data(), record.size()) != static_cast<ssize_t>(record_size))
        give_up("write the register");
}

bool GuardedRegister::seal(holdfast::FencingToken token, const holdfast::LockId& id) {
    const Turn turn(file_.get());
    const Last before = last();
    const bool newer = token.value > before.token || (token.value == before.token && id.text() == before.id);
    if (guard_ == Guard::on && !newer) return false;
    append("seal", {before.version, token.value, id.text()}, 0, 0);
    return true;
}

std::uint64_t GuardedRegister::read() {
    const Turn turn(file_.get());
    return last().version;
}

std::optional<std::uint64_t> GuardedRegister::write(holdfast::FencingToken token, const holdfast::LockId& id,
                                                    std::uint64_t number, std::uint64_t base) {
    const Turn turn(file_.get());
    const Last before = last();
    if (guard_ == Guard::on && (token.value != before.token || id.text() != before.id)) return std::nullopt;
    append("write", {before.version + 1, token.value, id.text()}, number, base);
    return before.version + 1;
}

}  // namespace torture
