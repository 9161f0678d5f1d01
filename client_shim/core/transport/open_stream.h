#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "client_shim/core/settings.h"
#include "client_shim/core/transport/frame_stream.h"
#include "client_shim/core/transport/nghttp2_library.h"
#include "client_shim/core/transport/unix_socket.h"
#include "proto/wire/batch.h"

namespace torpor::shim {

// Opens a stream to the executor at `executor_socket` as `transport` says; with kAuto, gRPC if the
// executor serves no rings or the rings cannot be had. The failure's code is an errno.
Result<std::unique_ptr<FrameStream>, int> OpenFrameStream(const Nghttp2& http2, Transport transport,
                                                          const std::string& executor_socket,
                                                          const wire::Attach& attach,
                                                          Deadline deadline);

}  // namespace torpor::shim
