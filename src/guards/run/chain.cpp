#include "guards/run/chain.hpp"

#include "base/os_error.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::guards::run {
namespace {

/// A message of the inner process through the socket: a word, and the place of a descriptor.
constexpr char word_begin = 'b';
constexpr char word_stopped = 's';
constexpr char word_keep = 'k';

Result<std::pair<base::Fd, base::Fd>> connect_ends() {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return std::unexpected(base::os_error(errno, "make a socket"));
    return std::pair(base::Fd(ends[0]), base::Fd(ends[1]));
}

/// Without waiting, because a stopped process reads nothing, and the other one must not be blocked.
ssize_t send_now(int socket, const void* data, std::size_t size) {
    return send(socket, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

Result<SharedState> share_state() {
    void* const page =
        mmap(nullptr, sizeof(ChainState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (page == MAP_FAILED) return std::unexpected(base::os_error(errno, "share memory"));
    return SharedState(new (page) ChainState);
}

void UnmapState::operator()(ChainState* state) const { munmap(state, sizeof *state); }

std::optional<int> OuterLink::next() {
    if (is_broken_) return std::nullopt;
    int signal = 0;
    const ssize_t got = recv(socket_.get(), &signal, sizeof signal, MSG_DONTWAIT);
    if (got == ssize_t{sizeof signal}) return signal;
    if (got >= 0 || (errno != EAGAIN && errno != EINTR)) is_broken_ = true;
    return std::nullopt;
}

void OuterLink::begin(std::chrono::milliseconds grace, Boottime now) const {
    state_->grace_ms = grace.count();
    state_->phase = ChainState::Phase::running;
    // Where the lease is long, the outer process finds that by itself before anything is due. Waking it would delay the
    // command.
    const Boottime first_due{std::chrono::milliseconds{state_->kill_at_ms} - grace};
    if (first_due - now < 2 * longest_unwatched) send_now(socket_.get(), &word_begin, 1);
}

void OuterLink::command_was_stopped() const { send_now(socket_.get(), &word_stopped, 1); }

void OuterLink::keep_open(std::uint8_t place, int descriptor) const {
    std::array words{word_keep, static_cast<char>(place)};
    iovec text{words.data(), words.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> control{};
    msghdr message{};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void InnerLink::pass_on(int signal) const { send_now(socket_.get(), &signal, sizeof signal); }

bool InnerLink::receive() {
    bool stopped = false;
    for (;;) {
        std::array<char, 2> words{};
        iovec text{words.data(), words.size()};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &text;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        if (recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0) return stopped;
        if (words[0] == word_stopped) stopped = true;
        if (const cmsghdr* const header = CMSG_FIRSTHDR(&message)) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
            kept_[static_cast<std::uint8_t>(words[1])] = base::Fd(descriptor);
        }
    }
}

Result<std::variant<InnerLink, OuterLink>> fork_inner(Signals& signals) {
    using Either = std::variant<InnerLink, OuterLink>;
    auto ends = connect_ends();
    if (!ends) return std::unexpected(ends.error());
    auto state = share_state();
    if (!state) return std::unexpected(state.error());
    const pid_t caller_group = getpgrp();
    // When the inner process is killed, those that descend from it become children of this one.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t pid = fork();
    if (pid < 0) return std::unexpected(base::os_error(errno, "start a process"));
    if (pid > 0) return Either(std::in_place_type<InnerLink>, pid, std::move(ends->first), *std::move(state));
    // A process group of its own: a signal to the whole job reaches only the outer process, which passes it on once. If
    // the job's group is killed, this process is left to end the command.
    setpgid(0, 0);
    prctl(PR_SET_NAME, "holdfast-inner");
    signals.listen_to_children_only();
    ends->first.reset();
    return Either(std::in_place_type<OuterLink>, std::move(ends->second), *std::move(state), caller_group);
}

}  // namespace holdfast::guards::run
