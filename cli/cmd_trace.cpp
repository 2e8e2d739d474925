#include <fmt/format.h>

#include "base/json.h"
#include "commands.h"
#include "common.h"
#include "riffle/error.h"
#include "riffle/fit.h"
#include "riffle/import.h"
#include "riffle/load.h"
#include "riffle/zoo.h"

namespace riffle::cli {
namespace {

void list(const Output& output) {
  if (output.json()) {
    Json json{{"traces", Json::array()}};
    for (const BuiltinModel& model : builtin_models())
      json["traces"].push_back(Json{{"name", model.name},
                                    {"parameters", model.parameters},
                                    {"layers", model.layers},
                                    {"batch", model.batch},
                                    {"configuration", model.configuration},
                                    {"paper", model.paper}});
    return output.write(json.dump(1) + "\n");
  }
  report::Table table{{{"model", false},
                       {"parameters"},
                       {"layers"},
                       {"batch"},
                       {"configuration", false},
                       {"paper", false}},
                      {}};
  for (const BuiltinModel& model : builtin_models())
    table.rows.push_back({model.name, std::to_string(model.parameters),
                          std::to_string(model.layers), std::to_string(model.batch),
                          model.configuration, model.paper});
  output.write(table);
}

void show(const std::string& name, const Output& output) {
  const Trace trace = load_trace(name);
  if (output.json()) return output.write(to_json(trace));
  report::Table table{{{"#"}, {"layer", false}, {"elements"}, {"size"}, {"forward"}, {"backward"}},
                      {}};
  for (const Layer& layer : trace.layers)
    table.rows.push_back({std::to_string(table.rows.size()), layer.name,
                          std::to_string(layer.elements), print(trace.bytes(layer)),
                          print(layer.forward), print(layer.backward)});
  if (output.csv()) return output.write(table);
  output.write(print(trace) + "\n\n" + report::print_table(table, output.colour()));
}

void import(const std::string& file, const Output& output) {
  const Trace trace = load_trace_file(file);
  output.write(to_json(trace));
  if (!output.file.empty()) fmt::print(stderr, "{}: {}\n", output.file, print(trace));
}

struct FitArguments {
  std::string file;
  std::string from = "0B";
  std::string to;
  int pieces = 6;
  Output output;
};

std::vector<MeasuredPoint> points_in_range(const FitArguments& arguments) {
  const Bytes from = parse_bytes(arguments.from, "--from");
  std::vector<MeasuredPoint> points = load_osu_file(arguments.file);
  std::erase_if(points, [&](const MeasuredPoint& point) {
    return point.size < from ||
           (!arguments.to.empty() && point.size > parse_bytes(arguments.to, "--to"));
  });
  if (points.empty())
    usage_error("{}: no measured size lies between --from and --to", arguments.file);
  return points;
}

Json piece_json(const Curve::Piece& piece) {
  return Json{{"from_bytes", piece.from.count},
              {"a_seconds", piece.cost.a.count()},
              {"b_seconds_per_byte", piece.cost.b.value}};
}

void fit(const FitArguments& arguments) {
  const auto points = points_in_range(arguments);
  const LinearFit line = fit_linear(points);
  const PiecewiseFit curve = fit_piecewise(points, arguments.pieces);
  const Output& output = arguments.output;
  if (output.json()) {
    Json pieces = Json::array();
    for (const Curve::Piece& piece : curve.curve.pieces()) pieces.push_back(piece_json(piece));
    const Json json{{"points", points.size()},
                    {"linear",
                     {{"a_seconds", line.cost.a.count()},
                      {"b_seconds_per_byte", line.cost.b.value},
                      {"residual_seconds", line.residual.count()},
                      {"relative_residual", line.relative_residual}}},
                    {"piecewise",
                     {{"pieces", pieces},
                      {"residual_seconds", curve.residual.count()},
                      {"relative_residual", curve.relative_residual}}}};
    return output.write(json.dump(1) + "\n");
  }
  report::Table table{{{"fit", false}, {"from"}, {"a"}, {"b per byte"}, {"residual"}, {"relative"}},
                      {}};
  const auto row = [&](const std::string& name, const Curve::Piece& piece) {
    table.rows.push_back({name, print(piece.from), print(piece.cost.a),
                          fmt::format("{:.4g} ns", piece.cost.b.value * 1e9), "", ""});
  };
  const auto finish = [&](Seconds residual, double relative) {
    table.rows.back()[4] = print(residual);
    table.rows.back()[5] = fmt::format("{:.1f} %", relative * 100);
  };
  row("linear", {Bytes{0}, line.cost});
  finish(line.residual, line.relative_residual);
  for (const Curve::Piece& piece : curve.curve.pieces()) row("piecewise", piece);
  finish(curve.residual, curve.relative_residual);
  output.write(table);
}

CLI::App* add_with_output(CLI::App& parent, const std::string& name, const std::string& about,
                          const std::string& example, Output& output) {
  auto* command = parent.add_subcommand(name, about);
  output.add_to(*command);
  command->footer("Example: " + example);
  return command;
}

}  // namespace

void add_trace(CLI::App& app) {
  auto* trace = app.add_subcommand("trace", "list, show, import traces; fit measured all-reduces");
  trace->require_subcommand(1);

  const auto list_output = std::make_shared<Output>();
  add_with_output(*trace, "list", "the built-in models", "riffle trace list", *list_output)
      ->callback([list_output] { list(*list_output); });

  const auto shown = std::make_shared<std::pair<std::string, Output>>();
  auto* show_command = add_with_output(*trace, "show", "the layers of a model with sizes and times",
                                       "riffle trace show resnet50", shown->second);
  show_command->add_option("trace", shown->first, "built-in name or file")->required();
  show_command->callback([shown] { show(shown->first, shown->second); });

  const auto imported = std::make_shared<std::pair<std::string, Output>>();
  auto* import_command = trace->add_subcommand(
      "import", "turn a PipeDream graph, a B-Caffe log or a torch profile into our JSON");
  import_command->add_option("file", imported->first, "what to read; its format is recognized")
      ->required();
  import_command->add_option("--output", imported->second.file, "the file to write");
  import_command->footer("Example: riffle trace import profile.json --output mymodel.json");
  import_command->callback([imported] { import(imported->first, imported->second); });

  const auto fitted = std::make_shared<FitArguments>();
  auto* fit_command =
      add_with_output(*trace, "fit", "straight and piecewise lines through an OSU all-reduce log",
                      "riffle trace fit allreduce8.log --from 200KB --to 500KB", fitted->output);
  fit_command->add_option("file", fitted->file, "output of OSU's all-reduce latency test")
      ->required();
  fit_command->add_option("--from", fitted->from, "smallest size to use")->capture_default_str();
  fit_command->add_option("--to", fitted->to, "largest size to use (default: all)");
  fit_command->add_option("--pieces", fitted->pieces, "most pieces of the piecewise fit")
      ->capture_default_str();
  fit_command->callback([fitted] { fit(*fitted); });
}

}  // namespace riffle::cli
