// Whether cuMemAddressReserve honours hints, with mappings between.
#include <cstdio>
#include <string>

#include "tools/probe/gpu.h"
#include "tools/probe/items.h"
#include "tools/probe/mapped_range.h"

namespace torpor::probe {
namespace {

constexpr CUdeviceptr kBase = 0x2000'0000'0000;  // where torpord's addresses begin by default
constexpr CUdeviceptr kOtherBases[] = {0x1000'0000'0000, 0x3000'0000'0000, 0x4000'0000'0000,
                                       0x5000'0000'0000, 0x6000'0000'0000, 0x10'0000'0000};
constexpr std::size_t kHandle = 2 * kMiB;
constexpr int kRounds = 3;

std::string Hexadecimal(CUdeviceptr address) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", address);
  return text;
}

std::string Answer(CUresult result, CUdeviceptr hint, CUdeviceptr address) {
  if (result != CUDA_SUCCESS) return NameOf(result);
  return address == hint ? "honoured" : "elsewhere: " + Hexadecimal(address);
}

// Maps a handle at both ends of a reservation, as sessions do that come and go.
void MapEnds(Report& report, CUdeviceptr address, std::size_t size) {
  MappedRange first(report, address, kHandle);
  MappedRange last(report, address + size - kHandle, kHandle);
}

void Reserve(Report& report, const std::string& name, std::size_t size) {
  std::vector<std::string> answers;
  std::vector<double> reserving;
  std::vector<double> freeing;
  for (int round = 0; round < kRounds; ++round) {
    CUdeviceptr address = 0;
    const Stopwatch watch;
    const CUresult result = cuMemAddressReserve(&address, size, 0, kBase, 0);
    reserving.push_back(watch.us());
    answers.push_back(Answer(result, kBase, address));
    if (result != CUDA_SUCCESS) continue;
    MapEnds(report, address, size);
    const Stopwatch free_watch;
    cuMemAddressFree(address, size);
    freeing.push_back(free_watch.us());
  }
  report.Texts(name, answers);
  report.Numbers(name + "/reserve", "us", reserving);
  if (!freeing.empty()) report.Numbers(name + "/free", "us", freeing);
}

void TryBases(Report& report) {
  for (const CUdeviceptr base : kOtherBases) {
    CUdeviceptr address = 0;
    const CUresult result = cuMemAddressReserve(&address, kGiB << 10, 0, base, 0);
    report.Texts("1TiB at " + Hexadecimal(base), {Answer(result, base, address)});
    if (result == CUDA_SUCCESS) cuMemAddressFree(address, kGiB << 10);
  }
}

// Two reservations that meet, as those of two sessions do.
void ReserveNeighbours(Report& report) {
  constexpr std::size_t kSize = kGiB << 6;
  std::vector<std::string> answers;
  for (const CUdeviceptr hint : {kBase, kBase + kSize}) {
    CUdeviceptr address = 0;
    const CUresult result = cuMemAddressReserve(&address, kSize, 0, hint, 0);
    answers.push_back(Answer(result, hint, address));
  }
  report.Texts("neighbours of 64GiB", answers);
}

}  // namespace

void ProbeReservations(Report& report) {
  const Gpu gpu(report);
  for (int i = 0; i < 2; ++i) {
    const std::string when = i == 0 ? "" : ", again";
    Reserve(report, "64GiB" + when, kGiB << 6);
    Reserve(report, "1TiB" + when, kGiB << 10);
  }
  TryBases(report);
  ReserveNeighbours(report);
}

}  // namespace torpor::probe
