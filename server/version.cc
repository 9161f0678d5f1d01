#include "server/version.h"

namespace torpor::server {

const char* Version() { return TORPOR_VERSION; }

}  // namespace torpor::server
