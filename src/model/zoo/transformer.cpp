// Transformers. BERT, uncased vocabulary, encoder with pooler and without a task's head: Devlin et
// al., arXiv:1810.04805. GPT-2, smallest: Radford et al., 2019.
#include <fmt/format.h>

#include "model/zoo/models.h"

namespace riffle::zoo {
namespace {

// Two products of four times the width, gelu between, dropout and residual after.
Shape feed_forward(Net& net, const std::string& up, const std::string& down, Shape in) {
  Shape x = net.gelu(net.linear(up, in, 4 * in.channels));
  x = net.linear(down, x, in.channels);
  return net.add(net.dropout(x));
}

Shape bert_layer(Net& net, const std::string& name, Shape in, std::int64_t heads) {
  for (const char* part : {"query", "key", "value"})
    net.linear(name + "attention.self." + part, in, in.channels);
  Shape x = net.attention(in, heads);
  x = net.linear(name + "attention.output.dense", x, in.channels);
  x = net.layer_norm(name + "attention.output.LayerNorm", net.add(net.dropout(x)));
  x = feed_forward(net, name + "intermediate.dense", name + "output.dense", x);
  return net.layer_norm(name + "output.LayerNorm", x);
}

Net bert(std::int64_t sequence, std::int64_t width, int layers) {
  Net net;
  Shape x = net.embedding("embeddings.word_embeddings", 30522, width, sequence);
  net.embedding("embeddings.position_embeddings", 512, width, sequence);
  x = net.add(x);
  net.embedding("embeddings.token_type_embeddings", 2, width, sequence);
  x = net.layer_norm("embeddings.LayerNorm", net.add(x));
  x = net.dropout(x);
  for (int i = 0; i < layers; ++i)
    x = bert_layer(net, fmt::format("encoder.layer.{}.", i), x, width / 64);
  // The pooler reads the first token only.
  net.elementwise("tanh", net.linear("pooler.dense", {width}, width));
  return net;
}

Shape gpt2_block(Net& net, const std::string& name, Shape in, std::int64_t heads) {
  Shape x = net.layer_norm(name + "ln_1", in);
  net.linear(name + "attn.c_attn", x, 3 * in.channels);
  x = net.attention(x, heads);
  x = net.linear(name + "attn.c_proj", x, in.channels);
  x = net.add(net.dropout(x));
  x = net.layer_norm(name + "ln_2", x);
  return feed_forward(net, name + "mlp.c_fc", name + "mlp.c_proj", x);
}

}  // namespace

Net bert_base(int sequence) {
  return bert(sequence, 768, 12);
}

Net bert_large(int sequence) {
  return bert(sequence, 1024, 24);
}

// The head shares wte's matrix. It is counted once, at wte, whose gradient is complete only when
// backward reaches the embedding, so the whole matrix travels last.
Net gpt2() {
  constexpr std::int64_t vocabulary = 50257;
  constexpr std::int64_t length = 1024;
  constexpr std::int64_t width = 768;
  Net net;
  Shape x = net.embedding("wte", vocabulary, width, length);
  net.embedding("wpe", length, width, length);
  x = net.dropout(net.add(x));
  for (int i = 0; i < 12; ++i) x = gpt2_block(net, fmt::format("h.{}.", i), x, width / 64);
  x = net.layer_norm("ln_f", x);
  net.loss(net.tied_linear(x, vocabulary));
  return net;
}

}  // namespace riffle::zoo
