#include "tools/loadgen/arrivals.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace torpor::loadgen {
namespace {

struct NamedProcess {
  std::string_view name;
  ArrivalProcess process;
};
constexpr NamedProcess kProcesses[] = {{"constant", ArrivalProcess::kConstant},
                                       {"poisson", ArrivalProcess::kPoisson},
                                       {"artifact", ArrivalProcess::kArtifact}};

Duration Seconds(double seconds) { return Duration(std::llround(seconds * 1e9)); }

// A stream of its own for every function: adding one leaves the others' arrivals alone.
std::mt19937_64 Random(std::uint64_t seed, std::size_t function) {
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                         static_cast<std::uint32_t>(function)};
  return std::mt19937_64(sequence);
}

double Uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;  // [0, 1)
}

void AddConstant(double rate, Duration length, std::size_t function, std::mt19937_64 random,
                 std::vector<Arrival>* schedule) {
  const double phase = Uniform(random);
  for (int i = 0;; ++i) {
    const Duration at = Seconds((i + phase) / rate);
    if (at >= length) return;
    schedule->push_back({at, function});
  }
}

void AddPoisson(double rate, Duration length, std::size_t function, std::mt19937_64 random,
                std::vector<Arrival>* schedule) {
  for (double seconds = 0;;) {
    seconds -= std::log(1 - Uniform(random)) / rate;
    const Duration at = Seconds(seconds);
    if (at >= length) return;
    schedule->push_back({at, function});
  }
}

std::vector<Arrival> ArtifactSchedule(const std::vector<double>& rates, Duration length,
                                      std::uint64_t seed) {
  const double total = std::accumulate(rates.begin(), rates.end(), 0.0);
  std::mt19937_64 random = Random(seed, 0);
  std::poisson_distribution<std::int64_t> gap_ms(1000 / total);
  std::discrete_distribution<std::size_t> function(rates.begin(), rates.end());
  std::vector<Arrival> schedule;
  for (Duration at = std::chrono::milliseconds(gap_ms(random)); at < length;
       at += std::chrono::milliseconds(gap_ms(random))) {
    schedule.push_back({at, function(random)});
  }
  return schedule;
}

}  // namespace

std::optional<ArrivalProcess> ParseArrivalProcess(std::string_view name) {
  for (const NamedProcess& entry : kProcesses) {
    if (entry.name == name) return entry.process;
  }
  return std::nullopt;
}

std::string_view ArrivalProcessName(ArrivalProcess process) {
  return std::find_if(std::begin(kProcesses), std::end(kProcesses),
                      [&](const NamedProcess& entry) { return entry.process == process; })
      ->name;
}

std::vector<Arrival> MakeSchedule(ArrivalProcess process, const std::vector<double>& rates,
                                  Duration length, std::uint64_t seed) {
  std::vector<Arrival> schedule;
  if (std::accumulate(rates.begin(), rates.end(), 0.0) <= 0) return schedule;
  if (process == ArrivalProcess::kArtifact) return ArtifactSchedule(rates, length, seed);
  for (std::size_t function = 0; function < rates.size(); ++function) {
    if (rates[function] <= 0) continue;
    const auto add = process == ArrivalProcess::kConstant ? AddConstant : AddPoisson;
    add(rates[function], length, function, Random(seed, function), &schedule);
  }
  std::stable_sort(schedule.begin(), schedule.end(),
                   [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
  return schedule;
}

}  // namespace torpor::loadgen
