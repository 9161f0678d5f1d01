// Asks a CUDA driver what Torpor needs to know of it, and prints the answers as one JSON document.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tools/probe/item_process.h"
#include "tools/probe/items.h"

namespace {

using Json = nlohmann::ordered_json;
using torpor::probe::Item;
using torpor::probe::ItemEnd;
using torpor::probe::Items;

constexpr const char* kDescription =
    "torpor-probe asks the CUDA driver that the dynamic linker finds what Torpor needs to know: "
    "whether addresses are given as asked for, what calls cost, what stalls what. Each item runs "
    "in a process of its own, so that one that crashes or hangs does not end the others. Prints "
    "{\"items\": [{name, seconds, error}], \"results\": [{name, values, units, error}]}.";

// Adds the lines of an item to the results, and how the item ended.
void Add(const Item& item, const ItemEnd& end, Json& document) {
  document["items"].push_back({{"name", item.name},
                               {"seconds", end.seconds},
                               {"error", end.error.empty() ? Json() : Json(end.error)}});
  std::istringstream lines(end.lines);
  for (std::string line; std::getline(lines, line);) {
    Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object()) document["results"].push_back(std::move(record));
  }
}

void ListItems() {
  for (const Item& item : Items()) std::printf("%-16s %s\n", item.name, item.question);
}

int Run(int argc, char** argv) {
  CLI::App app(kDescription, "torpor-probe");
  bool list = false;
  std::vector<std::string> names;
  app.add_flag("--list", list, "List the items and end");
  app.add_option("ITEM", names, "Items to run; all if none is named");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    ListItems();
    return 0;
  }
  for (const std::string& name : names) {
    if (std::none_of(Items().begin(), Items().end(),
                     [&](const Item& item) { return name == item.name; })) {
      std::fprintf(stderr, "torpor-probe: no item %s; --list lists them\n", name.c_str());
      return 2;
    }
  }
  Json document{{"items", Json::array()}, {"results", Json::array()}};
  for (const Item& item : Items()) {
    if (!names.empty() && std::find(names.begin(), names.end(), item.name) == names.end()) continue;
    Add(item, torpor::probe::RunInProcess(item), document);
  }
  std::puts(document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torpor-probe: %s\n", error.what());
    return 1;
  }
}
