#include "stores/stored_store.hpp"

#include "holdfast/open.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/redis_by_hand.hpp"
#include "support/requests.hpp"
#include "support/server_place.hpp"

#include <fstream>
#include <iterator>
#include <sstream>

namespace holdfast::tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

const fs::path fixtures = FORMAT_FIXTURES;

std::string content_of(const std::string& file) {
    std::ifstream in(fixtures / file, std::ios::binary);
    if (!in) throw std::runtime_error("there is no " + (fixtures / file).string());
    return {std::istreambuf_iterator<char>(in), {}};
}

std::string with(std::string text, std::string_view what, std::string_view instead) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += instead.size())
        text.replace(at, what.size(), instead);
    return text;
}

/// `%` and two digits are a byte, and `%` alone is an empty word.
std::string decoded(std::string_view word) {
    std::string bytes;
    if (word == "%") return bytes;
    for (std::size_t i = 0; i < word.size(); ++i) {
        if (word[i] != '%') {
            bytes += word[i];
            continue;
        }
        bytes += static_cast<char>(std::stoi(std::string(word.substr(i + 1, 2)), nullptr, 16));
        i += 2;
    }
    return bytes;
}

std::vector<std::vector<std::string>> lines_of(const std::string& file) {
    std::vector<std::vector<std::string>> lines;
    std::istringstream in(content_of(file));
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::vector<std::string>& all = lines.emplace_back();
        for (std::string word; words >> word;) all.push_back(decoded(word));
    }
    return lines;
}

void write_private(const fs::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

void make_files(const fs::path& folder) {
    fs::create_directory(folder);
    fs::permissions(folder, fs::perms::owner_all);
    for (const auto& line : lines_of("file.txt")) {
        const fs::path path = folder / line.at(1);
        if (line.at(0) == "file") {
            write_private(path, line.at(2));
            continue;
        }
        fs::create_directory(path);
        fs::permissions(path, fs::perms::owner_all);
    }
}

void make_schema(ByHand& by_hand, const std::string& schema) {
    const std::string dump = with(content_of("postgres.sql"), "SCHEMA holdfast", "SCHEMA " + schema);
    by_hand(with(dump, "holdfast.", schema + "."));
}

void make_tables(MysqlByHand& by_hand) {
    const std::string dump = content_of("mysql.sql");
    for (std::string_view rest = dump; !rest.empty();) {
        const std::size_t end = rest.find(";\n");
        by_hand.run(std::string(rest.substr(0, end)));
        rest.remove_prefix(end + 2);
    }
}

std::string random_name() {
    std::string name = "old_" + LockId::random().text();
    return with(std::move(name), "-", "_");
}

Credentials holder_in(const std::string& kind) {
    for (const auto& line : lines_of("leases.txt"))
        if (line.at(0) == kind) return must(Credentials::parse(line.at(1)));
    throw std::runtime_error("no lease of " + kind);
}

}  // namespace

std::vector<std::string> StoredStore::kinds() { return {"sqlite", "file", "postgres", "mysql", "redis", "etcd"}; }

StoredStore::StoredStore(std::string kind) : kind_(std::move(kind)), name_(random_name()), holder_(holder_in(kind_)) {
    if (kind_ == "sqlite") {
        write_private(folder_.path() / "locks.db", content_of("sqlite.db"));
    } else if (kind_ == "file") {
        make_files(folder_.path() / "locks");
    } else {
        const std::uint16_t port = shared_server_port(kind_);
        const ServerPlace place(kind_, port, name_);
        if (kind_ == "postgres") {
            ByHand by_hand(port);
            make_schema(by_hand, name_);
        } else if (kind_ == "mysql") {
            MysqlByHand by_hand(port, name_);
            make_tables(by_hand);
        } else if (kind_ == "redis") {
            RedisByHand by_hand(port);
            for (auto line : lines_of("redis.txt")) {
                line.at(1) = "{" + name_ + "}" + line.at(1);
                by_hand.ask(line);
            }
        } else {
            const EtcdByHand by_hand(port);
            for (const auto& line : lines_of("etcd.txt")) by_hand.put(name_ + "/" + line.at(1), line.at(2));
        }
    }
    const Instant last = must(open()->inspect(lock("taken/over"), soon())).lease->acquired_at;
    clock_.step_wall(last + 1s - clock_.wall());
}

StoredStore::~StoredStore() {
    if (kind_ == "sqlite" || kind_ == "file") return;
    const std::uint16_t port = shared_server_port(kind_);
    if (kind_ == "postgres") {
        ByHand by_hand(port);
        by_hand("DROP SCHEMA " + name_ + " CASCADE");
    } else if (kind_ == "mysql") {
        MysqlByHand(port).run("DROP DATABASE " + name_);
    } else if (kind_ == "redis") {
        RedisByHand by_hand(port);
        for (const std::string& key : by_hand.keys(name_)) by_hand.ask({"DEL", key});
    } else {
        EtcdByHand(port).remove_all(name_ + "/");
    }
}

std::unique_ptr<Store> StoredStore::open() const { return must(open_store(url(), clock_)); }

std::string StoredStore::url() const {
    if (kind_ == "sqlite") return "sqlite:" + (folder_.path() / "locks.db").string();
    if (kind_ == "file") return "file:" + (folder_.path() / "locks").string();
    return ServerPlace(kind_, shared_server_port(kind_), name_).url();
}

std::string StoredStore::format() const {
    if (kind_ == "sqlite") {
        // `user_version`, as the header of the file has it.
        std::ifstream in(folder_.path() / "locks.db", std::ios::binary);
        in.seekg(63);
        return std::to_string(in.get());
    }
    if (kind_ == "file") {
        std::ifstream in(folder_.path() / "locks" / "format");
        std::string line;
        std::getline(in, line);
        std::getline(in, line);
        return line.substr(line.find(' ') + 1);
    }
    const std::uint16_t port = shared_server_port(kind_);
    if (kind_ == "postgres") {
        ByHand by_hand(port);
        return by_hand("SELECT format FROM " + name_ + ".meta");
    }
    if (kind_ == "mysql") return MysqlByHand(port, name_).value("SELECT format FROM holdfast_meta");
    if (kind_ == "redis") return RedisByHand(port).ask({"HGET", "{" + name_ + "}:store", "format"});
    std::istringstream words(EtcdByHand(port).get(name_ + "/meta").value_or(""));
    std::string word;
    words >> word >> word;
    return word;
}

}  // namespace holdfast::tests
