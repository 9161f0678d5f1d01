#pragma once

#include <cstdint>

namespace torpor::chaos {

// How many IPv4 connections to a port of this machine its server has not closed, whether or not the
// other end lives. Connections that wait to be accepted count.
int ConnectionsTo(std::uint16_t port);

}  // namespace torpor::chaos
