#include "tools/torporctl/function_settings.h"

#include "tools/torporctl/admin_call.h"

namespace torpor::torporctl {
namespace {

template <typename Message>
void Fill(const server::ConfigRequest& request, Message& message) {
  message.set_function(request.function);
  for (const auto& [name, value] : request.settings) {
    v1::Setting& setting = *message.add_settings();
    setting.set_name(name);
    setting.set_value(value);
  }
}

v1::ConfigureRequest ToMessage(const server::ConfigRequest& request) {
  using Kind = server::ConfigRequest::Kind;
  v1::ConfigureRequest message;
  switch (request.kind) {
    case Kind::kAdd:
      Fill(request, *message.mutable_add());
      break;
    case Kind::kSet:
      Fill(request, *message.mutable_set());
      break;
    case Kind::kRemove:
      message.mutable_remove()->set_function(request.function);
      break;
    case Kind::kApply:
      message.mutable_apply()->set_text(request.text);
      message.mutable_apply()->set_file_name(request.file_name);
      message.mutable_apply()->set_prune(request.prune);
      message.mutable_apply()->set_is_trial(request.is_trial);
      break;
  }
  return message;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> Configure(const std::string& admin_socket,
                                                   const server::ConfigRequest& request) {
  const auto response = CallAdmin<v1::ConfigureResponse>(
      admin_socket, kQueryPatience, [&](auto& stub, auto& context, auto& answer) {
        return stub.Configure(&context, ToMessage(request), &answer);
      });
  if (!response.ok()) return response.status();
  return std::vector<std::string>(response->changes().begin(), response->changes().end());
}

}  // namespace torpor::torporctl
