#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "emulator/node/model_account.h"
#include "emulator/node/topology.h"

// The emulated node on which swaps are measured: the paper's, or another preset. Times are the
// model's: real ones over the time_scale.
namespace torpor::bench {

// Says what is wrong on stderr and ends the process.
[[noreturn]] void Fail(const std::string& what);

// The preset TORPOR_BENCH_PRESET, such as h200-1gpu, with the time_scale of its file; paper-4gpu
// with time_scale 20 by default. TORPOR_BENCH_TIME_SCALE replaces the time_scale. A file's text has
// times for kernels whose names match, too, and may be `slower` by a factor that ModelledMs does
// not count.
const emulator::Topology& ModelledNode();
std::string ModelledTopology(const std::vector<emulator::KernelTime>& kernels = {},
                             double slower = 1);

double ModelledMs(Duration real);

// What bytes take to GPU `gpu` over its own link, in modelled milliseconds.
double LinkMs(double bytes, unsigned gpu = 0);

// Writes into the benchmark's label whether the emulation kept up with its model, and into its
// counter `valid` 1 or 0: figures of one that did not are of the computer, not of the node.
void Conclude(benchmark::State& state, const emulator::ModelReport& report);

// A plot's title, which says so where not all of its figures are valid.
std::string TitleOf(const std::string& title, bool is_valid);

}  // namespace torpor::bench
