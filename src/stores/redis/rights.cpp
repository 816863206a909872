#include "stores/redis/rights.hpp"

namespace holdfast::stores::redis {
namespace {

/// Changes nothing. The arguments are those in locks.lua, because rights to keys are checked, too. LTRIM, which only
/// pruning needs, and the announcements are left out: their rights may be missing.
constexpr std::string_view question = R"lua(
local may = rawget(redis, 'acl_check_cmd')
if not may then return false end
local key, missing = KEYS[1], {}
for _, command in ipairs({
    {'TIME'}, {'EXISTS', key}, {'MGET', key}, {'MSET', key, ''}, {'HMGET', key, ''}, {'HSET', key, '', ''},
    {'HGET', key, ''}, {'HDEL', key, ''}, {'HLEN', key}, {'ZSCORE', key, ''}, {'ZADD', key, '0', ''},
    {'ZREM', key, ''}, {'ZCARD', key}, {'ZCOUNT', key, '0', '0'}, {'ZRANGE', key, '0', '0'},
    {'ZRANGEBYSCORE', key, '0', '0'}, {'LLEN', key}, {'RPUSH', key, ''}}) do
  local known, allowed = pcall(may, unpack(command))
  if not known or not allowed then missing[#missing + 1] = command[1] end
end
return missing
)lua";

}  // namespace

Command ask_rights(const Keys& keys) { return {"EVAL", question, "1", keys.store()}; }

std::optional<std::vector<std::string>> missing_rights(Value answer) {
    if (answer.is_error() && answer.text().starts_with("NOPERM")) return std::vector<std::string>{"EVAL"};
    if (answer.is_error() || answer.is_nil()) return std::nullopt;
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < answer.size(); ++i) missing.emplace_back(answer[i].text());
    return missing;
}

}  // namespace holdfast::stores::redis
