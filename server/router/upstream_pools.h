#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "server/router/upstream_pool.h"

namespace torpor::server {

// The pools of connections to all functions' servers, by address. Who uses a pool shares it: Keep
// may forget it meanwhile. Used on the router's thread.
class UpstreamPools {
 public:
  explicit UpstreamPools(boost::asio::io_context& io) : io_(io) {}

  // Returns null unless `address` is host:port.
  std::shared_ptr<UpstreamPool> Find(const std::string& address);
  // Forgets the pools of all other addresses.
  void Keep(const std::set<std::string>& addresses);
  void CloseIdle();

 private:
  boost::asio::io_context& io_;
  std::map<std::string, std::shared_ptr<UpstreamPool>> pools_;
};

}  // namespace torpor::server
