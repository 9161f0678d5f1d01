#include "client_shim/core/call_tracer.h"

// Of the core that these tests have in place of libtorpor_client.so.
std::atomic<torpor::shim::CallTracer*> torpor_call_tracer{nullptr};
