#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string>

#include "tests/base/simulated_disk.h"

namespace torpor {

// A writer of files, tried with every fault. Each try has a disk of its own.
struct DiskTrial {
  // Brings the disk to the state before the write. No faults.
  std::function<void(SimulatedDisk&)> prepare;
  // The write, which should meet a fault if `must_succeed` is false. Returns its status.
  std::function<absl::Status(SimulatedDisk&)> write;
  // Checks what the next process reads: of a disk without faults. `is_new`: the write has
  // succeeded, so that the old contents would be wrong.
  std::function<void(SimulatedDisk&, bool is_new)> check;
  // What was written is synced.
  bool outlives_machine = true;
};

// Cuts the power, and lets the disk be full or fail, at every operation of the write. The number of
// operations is returned, so that a test can tell that there were any.
inline int TryAllFaults(const DiskTrial& trial) {
  int operation = 1;
  for (bool is_over = false; !is_over; ++operation) {
    for (const int error : {ENOSPC, EIO}) {
      SCOPED_TRACE("error " + std::to_string(error) + " at " + std::to_string(operation));
      SimulatedDisk disk;
      trial.prepare(disk);
      disk.FailAt(operation, error);
      const absl::Status status = trial.write(disk);
      is_over = !disk.has_failed();
      disk.Heal();
      trial.check(disk, status.ok());
      // And if the machine dies some time afterwards.
      disk.PowerOn(PowerCut::kNothing);
      trial.check(disk, status.ok() && trial.outlives_machine);
    }
    for (const PowerCut kept : kPowerCuts) {
      SCOPED_TRACE("power cut " + std::to_string(static_cast<int>(kept)) + " at " +
                   std::to_string(operation));
      SimulatedDisk disk;
      trial.prepare(disk);
      disk.CutPowerAt(operation);
      const absl::Status status = trial.write(disk);
      disk.PowerOn(kept);
      trial.check(disk, status.ok() && trial.outlives_machine);
    }
  }
  return operation - 2;  // the last one was behind the end
}

}  // namespace torpor
