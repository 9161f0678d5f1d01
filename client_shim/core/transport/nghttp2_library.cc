#include "client_shim/core/transport/nghttp2_library.h"

#include <dlfcn.h>

#include <cstring>

namespace torpor::shim {
namespace {

// The loader finds this name by the run path ($ORIGIN) of libtorpor_client.so.
constexpr char kSoname[] = "libtorpor_nghttp2.so.14";

struct Loaded {
  Nghttp2 table{};
  std::string error;
};

template <typename Function>
void Bind(void* library, const char* name, Function& function, std::string& error) {
  void* symbol = dlsym(library, name);
  if (!symbol) error = std::string(kSoname) + " has no " + name;
  std::memcpy(&function, &symbol, sizeof symbol);
}

Loaded Open() {
  Loaded loaded;
  void* library = dlopen(kSoname, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    loaded.error = dlerror();
    return loaded;
  }
  Nghttp2& t = loaded.table;
  std::string& e = loaded.error;
  Bind(library, "nghttp2_session_callbacks_new", t.session_callbacks_new, e);
  Bind(library, "nghttp2_session_callbacks_del", t.session_callbacks_del, e);
  Bind(library, "nghttp2_session_callbacks_set_send_data_callback", t.set_send_data_callback, e);
  Bind(library, "nghttp2_session_callbacks_set_on_header_callback", t.set_on_header_callback, e);
  Bind(library, "nghttp2_session_callbacks_set_on_data_chunk_recv_callback", t.set_on_data_callback,
       e);
  Bind(library, "nghttp2_session_callbacks_set_on_stream_close_callback",
       t.set_on_stream_close_callback, e);
  Bind(library, "nghttp2_session_callbacks_set_data_source_read_length_callback",
       t.set_read_length_callback, e);
  Bind(library, "nghttp2_session_client_new", t.session_client_new, e);
  Bind(library, "nghttp2_session_del", t.session_del, e);
  Bind(library, "nghttp2_submit_settings", t.submit_settings, e);
  Bind(library, "nghttp2_submit_request", t.submit_request, e);
  Bind(library, "nghttp2_session_set_local_window_size", t.session_set_local_window_size, e);
  Bind(library, "nghttp2_session_resume_data", t.session_resume_data, e);
  Bind(library, "nghttp2_session_mem_send", t.session_mem_send, e);
  Bind(library, "nghttp2_session_mem_recv", t.session_mem_recv, e);
  Bind(library, "nghttp2_strerror", t.strerror, e);
  return loaded;
}

}  // namespace

const Nghttp2* Nghttp2::Load(std::string& error) {
  static const Loaded* const loaded = new Loaded(Open());  // never freed: exit handlers may call
  error = loaded->error;
  return error.empty() ? &loaded->table : nullptr;
}

}  // namespace torpor::shim
