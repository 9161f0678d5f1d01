#include "tools/sim/figures/grid.h"

#include <algorithm>
#include <utility>

#include "tools/sim/figures/labels.h"

namespace torpor::sim {
namespace {

template <typename Value>
Axis AxisOf(const std::string& key, const std::vector<Value>& asked,
            const std::vector<Value>& own) {
  const std::vector<Value>& values = asked.empty() ? own : asked;
  Axis axis(values.size());
  std::transform(values.begin(), values.end(), axis.begin(), [&](const Value& value) {
    return Json::object({{key, value}});
  });
  return axis;
}

// Every point with every value of the axis, the axis changing fastest.
std::vector<Json> Combine(const std::vector<Json>& points, const Axis& axis) {
  std::vector<Json> combined;
  combined.reserve(points.size() * axis.size());
  for (const Json& point : points) {
    for (const Json& labels : axis) combined.emplace_back(point).update(labels);
  }
  return combined;
}

}  // namespace

std::shared_ptr<const Testbed> MakeTestbed(const FigureOptions& options, const std::string& node) {
  return std::make_shared<const Testbed>(Testbed{
      options, options.node ? *options.node : *ReadNodeModel(node, options.profiles->reserved)});
}

Axis SystemAxis(const FigureOptions& options, const std::vector<std::string>& own) {
  return AxisOf("system", options.systems, own);
}

Axis FunctionAxis(const FigureOptions& options, const std::vector<std::size_t>& own) {
  return AxisOf("functions", options.functions, own);
}

Axis RateFactorAxis(const FigureOptions& options, const std::vector<double>& own) {
  return AxisOf("rate_factor", options.rate_factors, own);
}

Axis ArrivalAxis(const FigureOptions& options) {
  std::vector<std::string> asked;
  asked.reserve(options.arrivals.size());
  for (const workload::ArrivalProcess process : options.arrivals) {
    asked.emplace_back(workload::ArrivalProcessName(process));
  }
  return AxisOf<std::string>("arrivals", asked, {"artifact", "poisson"});
}

std::vector<Case> CasesOf(const std::shared_ptr<const Testbed>& testbed,
                          const std::vector<Axis>& axes, const Measure& measure) {
  std::vector<Json> points(1, Json::object());
  for (const Axis& axis : axes) points = Combine(points, axis);
  std::vector<Case> cases;
  cases.reserve(points.size());
  for (const Json& point : points) {
    const Json labels = InOrder(point);
    cases.push_back({labels, [=](std::uint64_t seed) { return measure(*testbed, labels, seed); }});
  }
  return cases;
}

}  // namespace torpor::sim
