#include "server/version.h"

namespace torpor::server {

const char* Version() { return "0.1.0"; }

}  // namespace torpor::server
