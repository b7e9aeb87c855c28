#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the networks of the zoo as ONNX files, each with an .npz of inputs and onnxruntime's outputs.

    python3 bench/zoo/export.py --list
    python3 bench/zoo/export.py resnet18 mobilenet_v2 --out .cache/zoo

The architectures come from torchvision (Debian: python3-torch, python3-torchvision) or the files beside this one. Weights are random but seeded, and every BatchNorm gets the statistics of a real pass, so activations neither vanish nor overflow
and a wrong kernel shows in the output. The same name gives the same file on the same torch version.
"""
import argparse
import importlib
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

IMAGE = (1, 3, 224, 224)

# Architectures that were measured before anything was tuned for them: `./dev bench --unseen` records their first figures.
UNSEEN = {
    "r3d_18": ("volumes:r3d", (1, 3, 8, 112, 112), 13, False),
    "mc3_18": ("volumes:mixed", (1, 3, 8, 112, 112), 13, False),
    "r2plus1d_18": ("volumes:factored", (1, 3, 8, 112, 112), 13, False),
    "unet_3d": ("volumes:UNet3d", (1, 1, 32, 64, 64), 13, False),
    "vnet": ("volumes:VNet", (1, 1, 32, 64, 64), 13, False),
    "c3d": ("volumes:C3d", (1, 3, 16, 112, 112), 13, False),
    "x3d_s": ("volumes:X3d", (1, 3, 8, 160, 160), 13, False),
    "i3d": ("volumes:Inception3d", (1, 3, 16, 112, 112), 13, False),
    "dcgan": ("generators:Dcgan", (1, 100, 1, 1), 13, False),
    "cyclegan": ("generators:CycleGan", (1, 3, 128, 128), 13, False),
    "pix2pix": ("generators:Pix2Pix", (1, 3, 256, 256), 13, False),
    "edsr": ("generators:Edsr", (1, 3, 96, 96), 13, False),
    "rcan": ("generators:Rcan", (1, 3, 96, 96), 13, False),
    "fsrcnn": ("generators:Fsrcnn", (1, 1, 128, 128), 13, False),
    "dncnn": ("generators:DenoisingNet", (1, 1, 128, 128), 13, False),
    "hifigan": ("generators:WaveGenerator", (1, 80, 40), 13, False),
    "demucs": ("generators:SourceSeparator", (1, 2, 15956), 13, False),
    "hrnet_pose": ("places:HighResolution", (1, 3, 256, 192), 13, False),
    "hourglass": ("places:Hourglass", (1, 3, 256, 256), 13, False),
    "simple_pose": ("places:SimplePose", (1, 3, 256, 192), 13, False),
    "centernet": ("places:CenterNet", (1, 3, 256, 256), 13, False),
    "ssd_vgg": ("places:Ssd", (1, 3, 300, 300), 13, False),
    "retinanet": ("places:RetinaNet", (1, 3, 256, 256), 13, False),
    "darknet53": ("places:DarkNet", (1, 3, 320, 320), 13, False),
    "segformer": ("places:SegFormer", (1, 3, 256, 256), 13, False),
    "pointnet": ("places:PointNet", (1, 6, 2048), 13, False),
    "enet": ("places:ENet", (1, 3, 256, 256), 13, False),
    "mobilenet_v1": ("classifiers:mobilenet_v1", IMAGE, 13, False),
    "repvgg_a0": ("classifiers:repvgg", IMAGE, 13, True),
    "ghostnet": ("classifiers:ghostnet", IMAGE, 14, False),
    "squeezenext": ("classifiers:squeezenext", IMAGE, 13, False),
    "dpn": ("classifiers:dual_path", IMAGE, 13, False),
    "csp_darknet": ("classifiers:cross_stage", IMAGE, 13, False),
    "mlp_mixer": ("classifiers:Mixer", IMAGE, 17, False),
    "convmixer": ("classifiers:convmixer", IMAGE, 13, False),
    "mobilevit_s": ("classifiers:mobilevit", (1, 3, 256, 256), 17, False),
    "shufflenet_v1": ("classifiers:shufflenet_v1", IMAGE, 13, False),
    "poolformer_s12": ("classifiers:poolformer", IMAGE, 13, False),
    "xception": ("classifiers:xception", (1, 3, 224, 224), 13, False),
    "crnn": ("classifiers:TextReader", (1, 1, 32, 160), 13, False),
    "wavenet": ("classifiers:WaveNet", (1, 1, 4096), 13, False),
    "wide_resnet50": ("torchvision:wide_resnet50_2", IMAGE, 13, False),
    "swin_v2_t": ("torchvision:swin_v2_t", (1, 3, 256, 256), 14, False),
    "maxvit_t": ("torchvision:maxvit_t", IMAGE, 14, False),
    "regnet_y_1_6gf": ("torchvision:regnet_y_1_6gf", IMAGE, 13, False),
    "mnasnet0_5": ("torchvision:mnasnet0_5", IMAGE, 13, False),
    "vit_b_32": ("torchvision:vit_b_32", IMAGE, 17, False),
    "mobileone_s2": ("papers:mobileone", IMAGE, 13, False),
    "fastvit_sa12": ("papers:FastVit", (1, 3, 256, 256), 17, False),
    "efficientformer_l1": ("papers:EfficientFormer", IMAGE, 13, False),
    "dinov2_s14_reg4": ("papers:DinoRegisters", IMAGE, 17, False),
    "res2net50": ("papers:res2net", IMAGE, 13, False),
    "bisenet_v2": ("papers:BiSeNet", (1, 3, 512, 1024), 13, False),
    "rtmdet_tiny": ("papers:RtmDet", (1, 3, 640, 640), 14, False),
    "efficientdet_d0": ("papers:EfficientDet", (1, 3, 512, 512), 13, False),
    "nafnet": ("papers:NafNet", (1, 3, 256, 256), 13, False),
    "swinir_light": ("papers:SwinIr", (1, 3, 64, 64), 17, False),
    "ddpm_unet": ("papers:DiffusionUNet", (1, 4, 32, 32), 13, False),
    "latent_decoder": ("papers:LatentDecoder", (1, 4, 16, 16), 14, False),
    "stylegan2": ("papers:StyleGan", (1, 512), 13, False),
    "nerf": ("papers:RadianceField", (1, 4096, 6), 13, False),
    "dgcnn": ("papers:PointGraph", (1, 3, 1024), 13, False),
    "conv_tasnet": ("papers:ConvTasNet", (1, 1, 8000), 13, False),
    "deepfilternet": ("papers:DeepFilter", (1, 400, 224), 14, False),
    "encodec": ("papers:EnCodec", (1, 1, 24000), 13, False),
    "deberta_small": ("papers:Deberta", (1, 128, 768), 17, False),
    "lstm_language_model": ("papers:RecurrentLanguageModel", (1, 35, 650), 13, False),
    "patchtst": ("papers:PatchTst", (1, 321, 336), 13, False),
    "gcnii": ("papers:DeepGraph", (1, 2708, 1433), 13, False),
    "slowfast_4x16": ("papers:SlowFast", (1, 3, 32, 112, 112), 13, False),
    "segresnet": ("papers:SegResNet", (1, 4, 64, 64, 64), 13, False),
}

# name: (constructor, input shape, opset, keep BatchNorm as a node of its own)
# The opsets differ on purpose: 13 spells LayerNorm and HardSwish as primitives, 14 and 17 as single operators.
ZOO = {
    "resnet18": ("torchvision:resnet18", IMAGE, 13, False),
    "resnet18_bn": ("torchvision:resnet18", IMAGE, 13, True),
    "mobilenet_v2": ("torchvision:mobilenet_v2", IMAGE, 13, False),
    "resnet50": ("torchvision:resnet50", IMAGE, 13, False),
    "squeezenet1_1": ("torchvision:squeezenet1_1", IMAGE, 13, False),
    "mobilenet_v3_large": ("torchvision:mobilenet_v3_large", IMAGE, 14, False),
    "efficientnet_b0": ("torchvision:efficientnet_b0", IMAGE, 13, False),
    "shufflenet_v2": ("torchvision:shufflenet_v2_x1_0", IMAGE, 13, False),
    "regnet_y_400mf": ("torchvision:regnet_y_400mf", IMAGE, 13, False),
    "densenet121": ("torchvision:densenet121", IMAGE, 13, True),
    "convnext_tiny": ("torchvision:convnext_tiny", IMAGE, 13, False),
    "vgg16": ("torchvision:vgg16", IMAGE, 13, False),
    "inception_v3": ("torchvision:inception_v3", (1, 3, 299, 299), 13, False),
    "vit_b_16": ("torchvision:vit_b_16", IMAGE, 17, False),
    "unet": ("networks:UNet", (1, 3, 256, 256), 13, False),
    "speech_lstm_gru": ("networks:SpeechNet", (1, 200, 80), 13, False),
    "yolov8n_like": ("networks:DetectorNano", (1, 3, 640, 640), 13, False),
    "espcn": ("networks:Upscaler", (1, 3, 180, 320), 13, False),
    "mlp": ("networks:Perceptron", (1, 784), 13, False),
    "speech_encoder": ("sequences:SpeechEncoder", (1, 16000), 13, False),
    "temporal_net": ("sequences:TemporalNet", (1, 40, 400), 13, False),
    "conformer": ("sequences:Conformer", (1, 400, 80), 13, False),
    "separable_speech": ("sequences:SeparableSpeechNet", (1, 64, 400), 13, False),
    "vocoder": ("sequences:Vocoder", (1, 80, 40), 13, False),
    "vit_small": ("attention:VisionTransformer", IMAGE, 13, False),
    "language_model": ("attention:LanguageModel", (1, 128, 512), 13, False),
    "transcriber": ("attention:Transcriber", (1, 80, 600), 13, False),
    "text_model": ("attention:TextModel", (1, 64, 384), 13, False),
    "windowed": ("attention:WindowedModel", (16, 49, 192), 13, False),
    "heartbeat": ("sequences:HeartbeatNet", (1, 12, 5000), 13, False),
    "mobilenet_v3_small": ("torchvision:mobilenet_v3_small", IMAGE, 14, False),
    "shufflenet_v2_x0_5": ("torchvision:shufflenet_v2_x0_5", IMAGE, 13, False),
    "regnet_x_800mf": ("torchvision:regnet_x_800mf", IMAGE, 13, False),
    "efficientnet_v2_s": ("torchvision:efficientnet_v2_s", (1, 3, 300, 300), 13, False),
    "mnasnet1_0": ("torchvision:mnasnet1_0", IMAGE, 13, False),
    "googlenet": ("torchvision:googlenet", IMAGE, 13, False),
    "swin_t": ("torchvision:swin_t", IMAGE, 14, False),
    "resnext50": ("torchvision:resnext50_32x4d", IMAGE, 13, False),
    "alexnet": ("torchvision:alexnet", IMAGE, 13, False),
    "srresnet": ("more:ResidualUpscaler", (1, 3, 96, 96), 13, False),
    "bert_base": ("more:TextEncoder", (1, 128, 768), 17, False),
    "gpt_small": ("more:TextDecoder", (1, 64, 512), 17, False),
    "deeplabv3_mobilenet": ("more:deeplabv3", (1, 3, 320, 320), 13, False),
    "fcn_resnet50": ("more:fcn", IMAGE, 13, False),
    "lraspp_mobilenet": ("more:lraspp", (1, 3, 320, 320), 13, False),
    **UNSEEN,
}


def build(name):
    """Returns the seeded network of that name in eval mode and its example input."""
    import torch

    constructor, shape, opset, keep_batch_norm = ZOO[name]
    module, attribute = constructor.split(":")
    torch.manual_seed(sum(name.encode()))
    if module == "torchvision":
        import torchvision

        extra = {"init_weights": False} if attribute in ("inception_v3", "googlenet") else {}
        network = getattr(torchvision.models, attribute)(weights=None, **extra)
    else:
        network = getattr(importlib.import_module(module), attribute)()
    spread(network)
    settle(network, shape)
    return network.eval(), torch.randn(shape), opset, keep_batch_norm


def norm_kinds():
    import torch

    return torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d


def spread(network):
    """Makes parameters that libraries start at a constant (0, 1, 1e-6) differ from each other and matter."""
    import torch

    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, (*norm_kinds(), torch.nn.LayerNorm, torch.nn.GroupNorm)):
                module.weight.uniform_(0.6, 1.4)
                module.bias.normal_(0, 0.2)
            elif isinstance(module, (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)):
                # He initialisation by fan-in: the variance survives ReLU, also in networks without any BatchNorm.
                torch.nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
                if module.bias is not None:
                    module.bias.normal_(0, 0.1)
            elif isinstance(module, torch.nn.Linear) and module.weight.std() < 1e-3:
                module.weight.normal_(0, module.in_features ** -0.5)
        for name, parameter in network.named_parameters():
            if name.endswith("layer_scale"):
                parameter.uniform_(0.2, 0.6)
            elif name.endswith(("class_token", "head.bias")):
                parameter.normal_(0, 0.5)


def settle(network, shape):
    """Gives every BatchNorm the statistics of one training-mode pass over noise of the input's shape."""
    import torch

    norms = [m for m in network.modules() if isinstance(m, norm_kinds())]
    if not norms:
        return
    for norm in norms:
        norm.momentum = None  # None: a plain average, so one pass replaces the initial 0 and 1 entirely
        norm.reset_running_stats()
    network.train()
    with torch.no_grad():
        network(torch.randn((2,) + tuple(shape[1:])))


def export(name, folder):
    import torch

    network, example, opset, keep_batch_norm = build(name)
    path = folder / f"{name}.onnx"
    partial = folder / f".{name}.onnx.part"
    with torch.no_grad():
        outputs = network(example)
    count = 1 if torch.is_tensor(outputs) else len(outputs)
    # PRESERVE on an eval-mode network keeps BatchNormalization nodes; EVAL folds them into the convolutions.
    mode = torch.onnx.TrainingMode.PRESERVE if keep_batch_norm else torch.onnx.TrainingMode.EVAL
    torch.onnx.export(network, example, str(partial), opset_version=opset, training=mode,
                      do_constant_folding=not keep_batch_norm, input_names=["input"],
                      output_names=["output"] if count == 1 else [f"output{i}" for i in range(count)])
    os.replace(partial, path)
    return path


def main():
    parser = argparse.ArgumentParser(description="Write the zoo's networks as ONNX files.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks to write; none means all")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / ".cache/zoo", help="folder (default .cache/zoo)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--force", action="store_true", help="write files that are there already, too")
    parser.add_argument("--reference-python", default=str(ROOT / ".cache/venv/bin/python"),
                        help="python that has the pinned onnxruntime, for the .npz files")
    args = parser.parse_args()
    if args.list:
        print("\n".join(ZOO))
        return 0
    unknown = [name for name in args.names if name not in ZOO]
    if unknown:
        print(f"no network named {', '.join(unknown)}; there are: {', '.join(ZOO)}", file=sys.stderr)
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    wanted = [args.out / f"{name}{suffix}" for name in args.names or ZOO for suffix in (".onnx", ".npz")]
    if not args.force and all(path.exists() for path in wanted):
        return 0  # importing torch takes seconds
    try:
        import torch
    except ImportError:
        print("this needs torch and torchvision: apt-get install python3-torch python3-torchvision, "
              "and /usr/bin/python3", file=sys.stderr)
        return 1
    torch.set_num_threads(os.cpu_count() or 1)
    for name in args.names or ZOO:
        path = args.out / f"{name}.onnx"
        if not args.force and path.exists() and path.with_suffix(".npz").exists():
            continue
        started = time.monotonic()
        if args.force or not path.exists():
            export(name, args.out)
        if args.force or not path.with_suffix(".npz").exists():
            command = [args.reference_python, str(pathlib.Path(__file__).with_name("reference.py")), str(path)]
            if subprocess.run(command).returncode != 0:
                print(f"{path}: no reference outputs; ./dev setup makes the python that computes them",
                      file=sys.stderr)
                return 1
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB  {time.monotonic() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
