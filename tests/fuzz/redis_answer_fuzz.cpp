// Answers of the script in Redis, or of an attacker in its place: lists in lists, as hiredis returns them.
#include "fuzz/target.hpp"
#include "holdfast/lease.hpp"
#include "stores/redis/codec.hpp"

#include <deque>

namespace holdfast::fuzz {
namespace {

using namespace stores::redis;

/// Makes an answer out of any bytes.
class Answers {
public:
    explicit Answers(Bytes bytes) : bytes_(bytes) {}

    const redisReply* next(int depth = 0) {
        redisReply& reply = made_.emplace_back();
        switch (take_choice(bytes_) % 5) {
            case 0: reply.type = REDIS_REPLY_NIL; break;
            case 1:
                reply.type = REDIS_REPLY_INTEGER;
                for (int i = 0; i < 8; ++i)
                    reply.integer = static_cast<long long>((static_cast<unsigned long long>(reply.integer) << 8U) |
                                                           take_choice(bytes_));
                break;
            case 2: reply.type = REDIS_REPLY_ERROR; [[fallthrough]];
            case 3: {
                if (reply.type == 0) reply.type = REDIS_REPLY_STRING;
                const std::size_t wanted = take_choice(bytes_);
                const std::size_t length = std::min(wanted, bytes_.size());
                std::string& text = texts_.emplace_back(text_of(bytes_.first(length)));
                bytes_ = bytes_.subspan(length);
                reply.str = text.data();
                reply.len = text.size();
                break;
            }
            default: {
                reply.type = REDIS_REPLY_ARRAY;
                auto& elements = lists_.emplace_back();
                const int count = depth < 4 ? take_choice(bytes_) % 8 : 0;
                for (int i = 0; i < count; ++i) elements.push_back(const_cast<redisReply*>(next(depth + 1)));
                reply.elements = elements.size();
                reply.element = elements.data();
            }
        }
        return &reply;
    }

private:
    Bytes bytes_;
    std::deque<redisReply> made_{};
    std::deque<std::string> texts_{};
    std::deque<std::vector<redisReply*>> lists_{};
};

void run(Bytes bytes) {
    Answers answers(bytes);
    const Value answer(answers.next());
    const auto outline = outline_of(answer, Address{.host = "localhost"});
    if (!outline) return require(!outline.error().message.empty(), "an answer that is refused without a word");
    require(outline->kind == Outline::Kind::none || outline->store_id, "a store without an id");
    for (std::size_t index = 0; index < 3; ++index) {
        Sight sight;
        const auto view = view_of(answer, index, *LockName::parse("x"), outline->time, sight);
        if (!view) require(sight.value == any_value, "a lock that cannot be read may be written");
        if (view) require(view->record.name.text() == "x", "the record of another lock");
    }
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
