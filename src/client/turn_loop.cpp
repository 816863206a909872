#include "client/turn_loop.hpp"

#include <utility>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// How long calls and turns wait for a thread that is busy with another batch, before they get one more. As long as the
/// usual batch never takes, so that usually one thread is enough.
constexpr milliseconds patience{50};

}  // namespace

class TurnLoop::Alarm {
public:
    Alarm(TurnLoop& loop, Work work) : loop_(loop), work_(std::move(work)) {}
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    ~Alarm() {
        const std::scoped_lock lock(loop_.mutex_);
        if (loop_.renewer_) loop_.renewer_->cancel_alarm(id_);
    }
    void set(Boottime at, std::function<void()> ring) {
        const std::scoped_lock lock(loop_.mutex_);
        if (loop_.renewer_) id_ = loop_.renewer_->set_alarm(at, std::move(ring));
    }
    void work() { work_(); }

private:
    TurnLoop& loop_;
    Work work_;
    Alarms::Id id_ = 0;
};

void TurnLoop::post(Work work) {
    if (!push(std::move(work))) return;
    run([self = shared_from_this()] { self->take_turns(); });
}

Loop::Timer TurnLoop::after(milliseconds time, Work work) {
    const auto alarm = std::make_shared<Alarm>(*this, std::move(work));
    alarm->set(Deadline::in(clock_, time).at, [loop = weak_from_this(), weak = std::weak_ptr(alarm)] {
        const auto self = loop.lock();
        if (!self) return;
        self->post([weak] {
            if (const auto rung = weak.lock()) rung->work();
        });
    });
    return alarm;
}

bool TurnLoop::run(std::function<void()> call) {
    const std::scoped_lock lock(mutex_);
    if (!renewer_) return false;
    renewer_->post({.run = std::move(call), .patience = patience});
    return true;
}

void TurnLoop::finish(Work work) {
    if (push(std::move(work))) take_turns();
}

void TurnLoop::close() {
    std::shared_ptr<Renewer> ends_outside_the_mutex;
    const std::scoped_lock lock(mutex_);
    ends_outside_the_mutex = std::move(renewer_);
}

/// True if the caller has to see to it that the work is run.
bool TurnLoop::push(Work work) {
    const std::scoped_lock lock(mutex_);
    work_.push_back(std::move(work));
    return !std::exchange(has_turn_, true);
}

/// An exception ends the program where it left. What comes meanwhile waits for the next turn, so that a batch which was
/// sent gets the thread first.
void TurnLoop::take_turns() noexcept {
    std::deque<Work> turn;
    {
        const std::scoped_lock lock(mutex_);
        turn.swap(work_);
    }
    while (!turn.empty()) {
        turn.front()();
        turn.pop_front();
    }
    {
        const std::scoped_lock lock(mutex_);
        has_turn_ = !work_.empty();
        if (!has_turn_) return;
    }
    run([self = shared_from_this()] { self->take_turns(); });
}

}  // namespace holdfast::client
