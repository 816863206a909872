// Three coroutines on one thread take turns with a lock, and stop when it is lost. Quoted in docs/reference/library.md,
// built and run by tests/docs.

#include "holdfast/asio.hpp"
#include "holdfast/open.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <variant>

namespace {

namespace asio = boost::asio;
using asio::use_awaitable;
using holdfast::Result;
using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;

/// Stands for work that awaits something else: a timer, a database, another service.
asio::awaitable<void> back_up(std::string who, holdfast::FencingToken token) {
    co_await asio::post(co_await asio::this_coro::executor, use_awaitable);
    std::cout << who << " works with token " << token.value << '\n';
}

asio::awaitable<Result<void>> run_job(holdfast::AsyncStore& store, const holdfast::LockName& name, std::string who) {
    holdfast::HoldOptions options;
    options.holder = {who, ""};
    options.wait = 1min;
    auto held = co_await holdfast::async_hold(store, name, options, use_awaitable);
    if (!held) co_return std::unexpected(held.error());

    // Whichever ends first cancels the other.
    const auto ended = co_await (back_up(who, held->token()) || holdfast::async_wait_for_loss(*held, use_awaitable));
    if (const auto* loss = std::get_if<holdfast::Error>(&ended)) co_return std::unexpected(*loss);
    co_return co_await holdfast::async_release(*held, use_awaitable);
}

}  // namespace

int main() {
    auto store = holdfast::open_store("memory:");
    const auto name = holdfast::LockName::parse("backup/db");
    if (!store || !name) return 1;
    auto calls = holdfast::AsyncStore::start(**store);
    if (!calls) return 1;

    asio::io_context context;
    int status = 0;
    for (const char* who : {"nightly", "weekly", "by hand"})
        asio::co_spawn(context, run_job(*calls, *name, who),
                       [&](const std::exception_ptr& thrown, const Result<void>& ended) {
                           if (thrown) std::rethrow_exception(thrown);
                           if (ended) return;
                           std::cerr << ended.error().message << '\n';
                           status = holdfast::row_of(ended.error().code).exit_status;
                       });
    context.run();
    return status;
}
