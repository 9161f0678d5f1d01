#include "tools/torporctl/explanation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/torporctl/admin_call.h"
#include "tools/torporctl/standing.h"

namespace torpor::torporctl {
namespace {

using Json = nlohmann::ordered_json;

// Returns an empty string under policies without required request counts.
std::string StandingRow(const v1::Explanation& explanation) {
  if (!explanation.has_required_count()) return {};
  return fmt::format("standing   {}, alpha {:.3g}\n", StandingText(explanation),
                     explanation.alpha());
}

using Others = google::protobuf::RepeatedPtrField<v1::Explanation::Others>;

// Returns, for example, "2 of encoder, 1 of speech".
std::string OthersText(const Others& others) {
  std::vector<std::string> texts;
  for (const v1::Explanation::Others& row : others) {
    texts.push_back(fmt::format("{} of {}", row.requests(), row.function()));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

Json ToJson(const Others& others) {
  Json rows = Json::array();
  for (const v1::Explanation::Others& row : others) {
    rows.push_back({{"function", row.function()}, {"requests", row.requests()}});
  }
  return rows;
}

// Adds a row for each reason of the wait.
std::string CauseRows(const v1::Explanation& explanation) {
  std::string text;
  const auto add = [&text](const std::string& cause) { text += "because    " + cause + "\n"; };
  if (explanation.own_lease_wait_ms() > 0) {
    add(fmt::format("its function ran others of its requests, {:.1f}ms",
                    explanation.own_lease_wait_ms()));
  }
  if (explanation.busy_wait_ms() > 0) {
    add(fmt::format("no GPU was free for it, {:.1f}ms", explanation.busy_wait_ms()));
  }
  if (explanation.chosen_wait_ms() > 0) {
    add(fmt::format("GPU {} has its image: better than another that was free, {:.1f}ms",
                    explanation.awaited_gpu(), explanation.chosen_wait_ms()));
  }
  if (explanation.has_revoked()) add("a program outside of requests had to give its GPU back");
  if (explanation.earlier_size() > 0) {
    add("earlier ones went first: " + OthersText(explanation.earlier()));
  }
  if (explanation.overtakers_size() > 0) {
    add("later ones were put before it: " + OthersText(explanation.overtakers()));
  }
  if (explanation.is_late()) add("it was too late for its deadline and was set aside");
  if (explanation.is_beyond_rescue()) add("its function is beyond rescue and comes last");
  return text;
}

// Returns the row of waiting times; before a GPU was chosen only the wait for a GPU is known.
std::string WaitText(const v1::Explanation& explanation) {
  std::string text = fmt::format("waited     {:.1f}ms for a GPU", explanation.gpu_wait_ms());
  if (!explanation.has_gpu()) return text + "\n";
  return text + fmt::format(", {:.1f}ms for room, {:.1f}ms for its image\n",
                            explanation.room_wait_ms(), explanation.image_wait_ms());
}

// Returns the source of the image on the GPU.
std::string ImageText(const v1::Explanation& explanation) {
  if (explanation.has_joined()) return "where its function ran already";
  if (explanation.source() == "resident") return "where its image was";
  if (explanation.source() == "peer") return fmt::format("from GPU {}", explanation.peer_gpu());
  if (!explanation.has_peer_gpu()) return "from the host";
  return fmt::format("from the host, since GPU {} could not give its image",
                     explanation.peer_gpu());
}

// Returns a row of simultaneous transfers through the same PCIe switch; empty without any.
std::string NeighbourText(const v1::Explanation& explanation) {
  std::vector<std::string> neighbours;
  for (const v1::Explanation::Neighbour& near : explanation.loading_nearby()) {
    neighbours.push_back(fmt::format("{} to GPU {}", near.function(), near.gpu()));
  }
  if (neighbours.empty()) return {};
  return fmt::format("beside     {}, through the same PCIe switch\n", fmt::join(neighbours, ", "));
}

// Returns the rows on the GPU and the run; empty before a GPU was chosen.
std::string GpuText(const v1::Explanation& explanation) {
  if (!explanation.has_gpu()) return {};
  std::string text = fmt::format("GPU        {}, {}\n", explanation.gpu(), ImageText(explanation));
  text += NeighbourText(explanation);
  if (explanation.evicted_size() > 0) {
    text += fmt::format("evicted    {}\n", fmt::join(explanation.evicted(), ", "));
  }
  return text + fmt::format("ran        {:.1f}ms\n", explanation.run_ms());
}

// Returns state, deadline and total time, up to now for a request that has not ended.
std::string OutcomeText(const v1::Explanation& explanation) {
  const std::string& state = explanation.state();
  const bool is_over = state != "waiting" && state != "running";
  const std::string verdict =
      explanation.counts_as().empty() ? "not passed" : explanation.counts_as();
  return fmt::format("state      {}{}{}\ndeadline   {:g}ms, {}: {:.1f}ms {}\n", state,
                     explanation.why().empty() ? "" : ": ", explanation.why(),
                     explanation.deadline_ms(), verdict, explanation.total_ms(),
                     is_over ? "in all" : "until now");
}

}  // namespace

absl::StatusOr<v1::Explanation> FetchExplanation(const std::string& admin_socket,
                                                 const std::string& request_id) {
  v1::ExplainRequest request;
  request.set_request_id(request_id);
  return CallAdmin<v1::Explanation>(admin_socket, kQueryPatience,
                                    [&](auto& stub, auto& context, auto& response) {
                                      return stub.Explain(&context, request, &response);
                                    });
}

std::string ExplanationText(const v1::Explanation& explanation) {
  const std::string instance =
      explanation.instance().empty() ? "" : fmt::format("instance   {}\n", explanation.instance());
  return fmt::format("request    {}\nfunction   {}\n{}arrived    when {} others waited\n",
                     explanation.request_id(), explanation.function(), instance,
                     explanation.waiting_before()) +
         StandingRow(explanation) + WaitText(explanation) + CauseRows(explanation) +
         GpuText(explanation) + OutcomeText(explanation);
}

std::string ExplanationJson(const v1::Explanation& explanation) {
  Json json = {
      {"request_id", explanation.request_id()},
      {"function", explanation.function()},
      {"instance", explanation.instance()},
      {"state", explanation.state()},
      {"why", explanation.why()},
      {"waiting_before", explanation.waiting_before()},
      {"gpu_wait_ms", explanation.gpu_wait_ms()},
      {"own_lease_wait_ms", explanation.own_lease_wait_ms()},
      {"busy_wait_ms", explanation.busy_wait_ms()},
      {"chosen_wait_ms", explanation.chosen_wait_ms()},
      {"awaited_gpu", explanation.has_awaited_gpu() ? Json(explanation.awaited_gpu()) : Json()},
      {"has_revoked", explanation.has_revoked()},
      {"earlier", ToJson(explanation.earlier())},
      {"overtakers", ToJson(explanation.overtakers())},
      {"is_late", explanation.is_late()},
      {"is_beyond_rescue", explanation.is_beyond_rescue()},
      {"total_ms", explanation.total_ms()},
      {"deadline_ms", explanation.deadline_ms()},
      {"counts_as", explanation.counts_as()}};
  AddStanding(explanation, json);
  if (explanation.has_required_count()) json["alpha"] = explanation.alpha();
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
