module trainyard/toolchain/charts

go 1.26.0

require github.com/NVIDIA/k8s-device-plugin v0.18.0
