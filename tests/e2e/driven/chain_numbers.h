#pragma once

// What chain_server and its model share.
namespace torpor::e2e {

constexpr unsigned kChainElements = 1u << 16;
constexpr unsigned kChainBegin = 7;
constexpr unsigned kChainFactor = 33;

}  // namespace torpor::e2e
