#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <string>

#include "server/router/upstream_pool.h"

namespace torpor::server {

// The pools of connections to all functions' servers, by address. References stay valid for the
// life of the object. Used on the router's thread.
class UpstreamPools {
 public:
  explicit UpstreamPools(boost::asio::io_context& io) : io_(io) {}

  // Returns null unless `address` is host:port.
  UpstreamPool* Find(const std::string& address);
  void CloseIdle();

 private:
  boost::asio::io_context& io_;
  std::map<std::string, UpstreamPool> pools_;
};

}  // namespace torpor::server
