#pragma once

#include <map>
#include <string>

#include "base/units.h"

namespace torpor::soak {

// What the daemon tells of memory in different places, which must be the same, and agree with what
// the functions know themselves. Every difference is a failure of the test. Nothing may be under
// way meanwhile.

// On every GPU the images that are there amount to what is used, each function's to its part of it,
// as in the metrics. Of the functions that are in `allocated` (by name), which are saved first, the
// part in use is that, and the image has room for it.
void CheckAccounts(const std::string& admin_socket, const std::map<std::string, Bytes>& allocated);

// No image is on any GPU, and no byte of any GPU is used.
void CheckGpusAreEmpty(const std::string& admin_socket);

}  // namespace torpor::soak
