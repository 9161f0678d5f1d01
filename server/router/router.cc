#include "server/router/router.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "base/status_macros.h"
#include "base/thread_name.h"
#include "server/router/await.h"
#include "server/router/client_connection.h"
#include "server/router/router_core.h"

namespace torpor::server {

RouterCore::RouterCore(const Router::Options& router_options, Router::Parts router_parts)
    : config(router_options.config),
      drain_timeout(router_options.drain_timeout),
      parts(router_parts),
      desk(io, *parts.broker),
      inquiries(io, *parts.node),
      hangups(io),
      upstreams(io),
      spool(io, config, *parts.metrics) {}

void RouterCore::SetOptions(const Router::Options& options) {
  config = options.config;
  drain_timeout = options.drain_timeout;
  spool.Configure(config);
}

void RouterCore::SetFunctions(const std::map<std::string, FunctionConfig>& configured) {
  functions.clear();
  std::set<std::string> addresses;
  for (const auto& [name, function] : configured) {
    functions[name] = std::make_shared<const FunctionConfig>(function);
    for (const InstanceConfig& instance : InstancesOf(function)) {
      addresses.insert(instance.upstream);
    }
  }
  upstreams.Keep(addresses);
}

std::shared_ptr<const FunctionConfig> RouterCore::FindFunction(const std::string& name) const {
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

void RouterCore::EndRequest() {
  --active_requests;
  if (active_requests == 0 && on_drained) std::exchange(on_drained, nullptr)();
}

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

std::string Format(const tcp::endpoint& endpoint) {
  return endpoint.address().is_v6()
             ? fmt::format("[{}]:{}", endpoint.address().to_string(), endpoint.port())
             : fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

absl::StatusOr<tcp::acceptor> Listen(asio::io_context& io, const std::string& address) {
  TORPOR_ASSIGN_OR_RETURN(const HostAndPort host_and_port, ParseHostAndPort(address));
  boost::system::error_code error;
  const auto found = tcp::resolver(io).resolve(
      host_and_port.host, std::to_string(host_and_port.port), tcp::resolver::passive, error);
  tcp::acceptor acceptor(io);
  if (!error) {
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  }
  if (error) {
    return absl::UnavailableError(
        fmt::format("cannot listen on {}: {}; choose another address", address, error.message()));
  }
  return acceptor;
}

class AsioRouter final : public Router {
 public:
  AsioRouter(const Options& options, Parts parts) : core_(options, parts) {}
  // Throws for lack of memory only, which ends the process anyhow.
  ~AsioRouter() override { Close(); }  // NOLINT(bugprone-exception-escape)

  absl::Status Start() {
    TORPOR_ASSIGN_OR_RETURN(http_address_, Bind(core_.config.http_address, http_acceptor_));
    TORPOR_ASSIGN_OR_RETURN(metrics_address_,
                            Bind(core_.config.metrics_address, metrics_acceptor_));
    thread_ = std::thread([this] {
      NameThread("router");
      core_.io.run();
    });
    return absl::OkStatus();
  }

  std::string http_address() const override { return http_address_; }
  std::string metrics_address() const override { return metrics_address_; }

  void SetFunctions(std::map<std::string, FunctionConfig> functions) override {
    core_.parts.metrics->SetFunctions(functions);
    asio::post(core_.io, [this, functions = std::move(functions)] {
      core_.SetFunctions(functions);
      if (!std::exchange(is_serving_, true)) Serve();
    });
  }

  void SetOptions(const Options& options) override {
    asio::post(core_.io, [this, options] { core_.SetOptions(options); });
  }

  void Post(std::function<void()> task) override { asio::post(core_.io, std::move(task)); }

  void Drain() override {
    auto drained = std::make_shared<std::promise<void>>();
    auto begun = std::make_shared<std::promise<Duration>>();
    std::future<void> future = drained->get_future();
    asio::post(core_.io, [this, drained, begun] {
      core_.is_draining = true;
      begun->set_value(core_.drain_timeout);
      for (ClientConnection* const connection : core_.connections) connection->CloseIfIdle();
      core_.on_drained = [drained] { drained->set_value(); };
      if (core_.active_requests == 0) std::exchange(core_.on_drained, nullptr)();
    });
    const Duration patience = begun->get_future().get();
    if (future.wait_for(patience) != std::future_status::ready) {
      spdlog::warn("requests still run after drain_timeout; they are broken off");
    }
  }

  void Close() override {
    if (!thread_.joinable()) return;
    asio::post(core_.io, [this] { CloseAll(); });
    thread_.join();
  }

 private:
  // Returns the bound address, or empty text if none is configured.
  absl::StatusOr<std::string> Bind(const std::string& address,
                                   std::optional<tcp::acceptor>& acceptor) {
    if (address.empty()) return std::string();
    TORPOR_ASSIGN_OR_RETURN(acceptor, Listen(core_.io, address));
    return Format(acceptor->local_endpoint());
  }

  void Serve() {
    const auto accept = [this](std::optional<tcp::acceptor>& acceptor, ListenerRole role) {
      if (!acceptor || !acceptor->is_open()) return;
      asio::co_spawn(core_.io, AcceptAll(*acceptor, role), asio::detached);
    };
    accept(http_acceptor_, ListenerRole::kRequests);
    accept(metrics_acceptor_, ListenerRole::kMetrics);
  }

  asio::awaitable<void> AcceptAll(tcp::acceptor& acceptor, ListenerRole role) {
    while (acceptor.is_open()) {
      auto [error, socket] = co_await acceptor.async_accept(kAwait);
      // A connection may have come just before the acceptor was closed.
      if (error == asio::error::operation_aborted || is_closed_) co_return;
      if (error) {
        // Probably out of descriptors: wait until some are closed.
        spdlog::warn("cannot accept a connection: {}", error.message());
        asio::steady_timer pause(core_.io, std::chrono::milliseconds(100));
        co_await pause.async_wait(kAwait);
        continue;
      }
      // Close the connection beyond the maximum at once, before the client has sent anything.
      const auto open = static_cast<int>(core_.connections.size());
      if (role == ListenerRole::kRequests && open >= core_.config.max_connections) continue;
      auto connection = std::make_shared<ClientConnection>(core_, std::move(socket), role);
      asio::co_spawn(core_.io, connection->Serve(), [connection](const std::exception_ptr&) {});
    }
  }

  // Without pending waits the thread ends.
  void CloseAll() {
    is_closed_ = true;
    boost::system::error_code ignored;
    for (auto* const acceptor : {&http_acceptor_, &metrics_acceptor_}) {
      if (*acceptor) (*acceptor)->close(ignored);
    }
    for (ClientConnection* const connection : core_.connections) connection->Abort();
    core_.inquiries.Close();
    core_.upstreams.CloseIdle();
    core_.hangups.Close();
  }

  RouterCore core_;
  // On the router's thread.
  bool is_serving_ = false;
  bool is_closed_ = false;
  std::optional<tcp::acceptor> http_acceptor_;
  std::optional<tcp::acceptor> metrics_acceptor_;
  std::string http_address_;
  std::string metrics_address_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Router>> Router::Start(const Options& options, Parts parts) {
  auto router = std::make_unique<AsioRouter>(options, parts);
  TORPOR_RETURN_IF_ERROR(router->Start());
  return router;
}

}  // namespace torpor::server
