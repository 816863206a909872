#include "server/log.hpp"

namespace holdfast::server {

void Log::write(std::string_view event, Fields fields) {
    if (!out_) return;
    json::Object line;
    line.set("at", json::Value::time(clock_.wall())).set("event", json::Value::text(event));
    for (const auto& [key, value] : fields) line.set(key, value);
    out_(line.done().written());
}

}  // namespace holdfast::server
