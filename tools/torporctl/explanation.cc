#include "tools/torporctl/explanation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/torporctl/admin_call.h"

namespace torpor::torporctl {
namespace {

using Json = nlohmann::ordered_json;

std::string StandingText(const v1::Explanation& explanation) {
  if (!explanation.has_required_count()) return {};
  return fmt::format("standing   {:.1f} requests in time required, {} group, alpha {:.3g}\n",
                     explanation.required_count(),
                     explanation.is_first_group() ? "first" : "second", explanation.alpha());
}

std::string WaitText(const v1::Explanation& explanation) {
  std::string text = fmt::format("waited     {:.1f}ms for a GPU", explanation.gpu_wait_ms());
  if (!explanation.has_gpu()) return text + "\n";
  return text + fmt::format(", {:.1f}ms for room, {:.1f}ms for its image\n",
                            explanation.room_wait_ms(), explanation.image_wait_ms());
}

std::string ImageText(const v1::Explanation& explanation) {
  if (explanation.has_joined()) return "where its function ran already";
  if (explanation.source() == "resident") return "where its image was";
  // What the other GPU could not give came from the host.
  if (explanation.has_peer_gpu()) return fmt::format("from GPU {}", explanation.peer_gpu());
  return "from the host";
}

std::string NeighbourText(const v1::Explanation& explanation) {
  std::vector<std::string> neighbours;
  for (const v1::Explanation::Neighbour& near : explanation.loading_nearby()) {
    neighbours.push_back(fmt::format("{} to GPU {}", near.function(), near.gpu()));
  }
  if (neighbours.empty()) return {};
  return fmt::format("beside     {}, through the same PCIe switch\n", fmt::join(neighbours, ", "));
}

std::string GpuText(const v1::Explanation& explanation) {
  if (!explanation.has_gpu()) return {};
  std::string text = fmt::format("GPU        {}, {}\n", explanation.gpu(), ImageText(explanation));
  text += NeighbourText(explanation);
  if (explanation.evicted_size() > 0) {
    text += fmt::format("evicted    {}\n", fmt::join(explanation.evicted(), ", "));
  }
  return text + fmt::format("ran        {:.1f}ms\n", explanation.run_ms());
}

std::string OutcomeText(const v1::Explanation& explanation) {
  const std::string& state = explanation.state();
  const bool is_over = state != "waiting" && state != "running";
  const bool is_missed = explanation.total_ms() > explanation.deadline_ms() || state == "failed" ||
                         state == "lost";
  const char* const verdict = is_missed             ? "missed"
                              : state == "answered" ? "met"
                                                    : "not passed";
  return fmt::format("state      {}{}{}\ndeadline   {:g}ms, {}: {:.1f}ms {}\n", explanation.state(),
                     explanation.why().empty() ? "" : ": ", explanation.why(),
                     explanation.deadline_ms(), verdict, explanation.total_ms(),
                     is_over ? "in all" : "until now");
}

}  // namespace

absl::StatusOr<v1::Explanation> FetchExplanation(const std::string& admin_socket,
                                                 const std::string& request_id) {
  constexpr std::chrono::seconds kPatience(5);
  v1::ExplainRequest request;
  request.set_request_id(request_id);
  return CallAdmin<v1::Explanation>(admin_socket, kPatience,
                                    [&](auto& stub, auto& context, auto& response) {
                                      return stub.Explain(&context, request, &response);
                                    });
}

std::string ExplanationText(const v1::Explanation& explanation) {
  return fmt::format("request    {}\nfunction   {}\narrived    when {} others waited\n",
                     explanation.request_id(), explanation.function(),
                     explanation.waiting_before()) +
         StandingText(explanation) + WaitText(explanation) + GpuText(explanation) +
         OutcomeText(explanation);
}

std::string ExplanationJson(const v1::Explanation& explanation) {
  Json json = {{"request_id", explanation.request_id()},
               {"function", explanation.function()},
               {"state", explanation.state()},
               {"why", explanation.why()},
               {"waiting_before", explanation.waiting_before()},
               {"gpu_wait_ms", explanation.gpu_wait_ms()},
               {"total_ms", explanation.total_ms()},
               {"deadline_ms", explanation.deadline_ms()}};
  if (explanation.has_required_count()) {
    json["required_count"] = explanation.required_count();
    json["is_first_group"] = explanation.is_first_group();
    json["alpha"] = explanation.alpha();
  }
  if (explanation.has_gpu()) {
    Json nearby = Json::array();
    for (const v1::Explanation::Neighbour& near : explanation.loading_nearby()) {
      nearby.push_back({{"gpu", near.gpu()}, {"function", near.function()}});
    }
    Json evicted = Json::array();
    for (const std::string& function : explanation.evicted()) evicted.push_back(function);
    json["gpu"] = explanation.gpu();
    json["source"] = explanation.source();
    json["peer_gpu"] = explanation.has_peer_gpu() ? Json(explanation.peer_gpu()) : Json();
    json["has_joined"] = explanation.has_joined();
    json["loading_nearby"] = std::move(nearby);
    json["evicted"] = std::move(evicted);
    json["room_wait_ms"] = explanation.room_wait_ms();
    json["image_wait_ms"] = explanation.image_wait_ms();
    json["run_ms"] = explanation.run_ms();
  }
  return json.dump(2) + "\n";
}

}  // namespace torpor::torporctl
