#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "tests/chaos/chaos_run.h"
#include "tests/chaos/judgement.h"

namespace torpor::chaos {

// The result as tables: kills and delays, requests, growth.
std::string TableOf(const ChaosResult& result);

// The result with the run's settings and the machine's processors. Times are milliseconds.
nlohmann::ordered_json JsonOf(const ChaosRun& run, const ChaosResult& result);

}  // namespace torpor::chaos
