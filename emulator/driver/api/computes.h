#pragma once

// Beside the CUDA driver API, for the emulated libraries, which take it from the libcuda.so.1 that
// is loaded: 0 if the topology says that nothing is computed. Of an initialised driver.
extern "C" int torporEmulatorComputes();
