#include "tools/torporctl/function_settings.h"

#include "tools/torporctl/admin_call.h"

namespace torpor::torporctl {

absl::Status SetFunction(const std::string& admin_socket, const std::string& function,
                         const std::vector<server::SettingText>& settings) {
  v1::SetFunctionRequest request;
  request.set_function(function);
  for (const auto& [name, value] : settings) {
    v1::Setting& setting = *request.add_settings();
    setting.set_name(name);
    setting.set_value(value);
  }
  return CallAdmin<v1::SetFunctionResponse>(admin_socket, kQueryPatience,
                                            [&](auto& stub, auto& context, auto& response) {
                                              return stub.SetFunction(&context, request, &response);
                                            })
      .status();
}

}  // namespace torpor::torporctl
