#pragma once

#include <nghttp2/nghttp2.h>

#include <string>

namespace torpor::shim {

// The used functions of nghttp2. The library is opened at the first CUDA call, with RTLD_LOCAL and
// under a private soname, so that no symbol meets the program's own nghttp2.
struct Nghttp2 {
  decltype(&nghttp2_session_callbacks_new) session_callbacks_new;
  decltype(&nghttp2_session_callbacks_del) session_callbacks_del;
  decltype(&nghttp2_session_callbacks_set_send_data_callback) set_send_data_callback;
  decltype(&nghttp2_session_callbacks_set_on_header_callback) set_on_header_callback;
  decltype(&nghttp2_session_callbacks_set_on_data_chunk_recv_callback) set_on_data_callback;
  decltype(&nghttp2_session_callbacks_set_on_stream_close_callback) set_on_stream_close_callback;
  decltype(&nghttp2_session_callbacks_set_data_source_read_length_callback)
      set_read_length_callback;
  decltype(&nghttp2_session_client_new) session_client_new;
  decltype(&nghttp2_session_del) session_del;
  decltype(&nghttp2_submit_settings) submit_settings;
  decltype(&nghttp2_submit_request) submit_request;
  decltype(&nghttp2_session_set_local_window_size) session_set_local_window_size;
  decltype(&nghttp2_session_resume_data) session_resume_data;
  decltype(&nghttp2_session_mem_send) session_mem_send;
  decltype(&nghttp2_session_mem_recv) session_mem_recv;
  decltype(&nghttp2_strerror) strerror;

  // Opens the library, once a process. Returns null and a reason in `error` if that fails.
  static const Nghttp2* Load(std::string& error);
};

}  // namespace torpor::shim
