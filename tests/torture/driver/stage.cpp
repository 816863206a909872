#include "torture/driver/stage.hpp"

#include <set>
#include <stdexcept>

namespace torture {
namespace {

class UrlStage final : public Stage {
public:
    explicit UrlStage(std::string url) : url_(std::move(url)) {}
    [[nodiscard]] std::string url() const override { return url_; }

private:
    std::string url_;
};

}  // namespace

void Stage::begin(const Choice& choice) { throw std::invalid_argument("this store cannot suffer " + choice.fault); }

std::unique_ptr<Stage> set_up(const std::string& store, Place place) {
    static const std::set<std::string> servers{"postgres", "mysql", "redis", "etcd", "http"};
    if (store == "file" || store == "sqlite") return set_up_folder(store, place);
    if (servers.contains(store)) return set_up_server(store);
    if (store == "etcd3") return set_up_cluster();
    if (store == "http_postgres") return set_up_daemon_on_server();
    if (store.find(':') != std::string::npos) return std::make_unique<UrlStage>(store);
    throw std::invalid_argument("there is no kind of store called " + store);
}

}  // namespace torture
