#pragma once

#include "base/units.h"

namespace torpor::server {

// Equal blocks of images that are stored once. See BlockSharing. A plain record.
struct SharingFigures {
  Bytes stored = 0;  // in tenants' files
  Bytes used = 0;    // what images have there, added up
};

}  // namespace torpor::server
