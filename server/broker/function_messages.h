#pragma once

#include <map>
#include <string>

#include "proto/torpor/v1/router.pb.h"
#include "server/config/config.h"

namespace torpor::server {

// What the router knows of functions, as a message of proto/torpor/v1/router.proto.
v1::TorpordMessage::Functions ToMessage(const std::map<std::string, FunctionConfig>& functions);

// Settings that the router does not know are as by default. Every function has a list of
// instances.
std::map<std::string, FunctionConfig> FromMessage(const v1::TorpordMessage::Functions& message);

}  // namespace torpor::server
