#include "server/version/version.h"

namespace torpor::server {

const char* Version() { return TORPOR_VERSION; }

}  // namespace torpor::server
