# A VPC, an EKS cluster with its add-ons and two nodes, Karpenter, and one pod on a GPU node.
#
# Written as people write such configurations. The charts' folder is a variable, because the chart
# registries are outside of the world that it comes up in.

terraform {
  required_providers {
    aws = {
      source = "hashicorp/aws"
    }
  }
}

provider "aws" {
  region = var.region

  default_tags {
    tags = { owner = "shop" }
  }
}

variable "region" {
  type    = string
  default = "us-west-2"
}

variable "charts" {
  type = string
}

data "aws_caller_identity" "current" {}

data "aws_availability_zones" "available" {
  state = "available"
}

locals {
  zones = slice(data.aws_availability_zones.available.names, 0, 2)
}

# ---- the network: a public and a private subnet in each zone, one NAT gateway

resource "aws_vpc" "shop" {
  cidr_block           = "10.7.0.0/16"
  enable_dns_hostnames = true
  tags                 = { Name = "shop" }
}

resource "aws_internet_gateway" "shop" {
  vpc_id = aws_vpc.shop.id
}

resource "aws_subnet" "public" {
  count                   = 2
  vpc_id                  = aws_vpc.shop.id
  cidr_block              = cidrsubnet(aws_vpc.shop.cidr_block, 4, count.index)
  availability_zone       = local.zones[count.index]
  map_public_ip_on_launch = true
}

resource "aws_subnet" "private" {
  count             = 2
  vpc_id            = aws_vpc.shop.id
  cidr_block        = cidrsubnet(aws_vpc.shop.cidr_block, 4, 8 + count.index)
  availability_zone = local.zones[count.index]
  tags              = { "karpenter.sh/discovery" = "shop" }
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.shop.id

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.shop.id
  }
}

resource "aws_route_table_association" "public" {
  count          = 2
  subnet_id      = aws_subnet.public[count.index].id
  route_table_id = aws_route_table.public.id
}

resource "aws_eip" "nat" {
  domain = "vpc"
}

resource "aws_nat_gateway" "nat" {
  subnet_id     = aws_subnet.public[0].id
  allocation_id = aws_eip.nat.id
  depends_on    = [aws_route_table_association.public]
}

resource "aws_route_table" "private" {
  vpc_id = aws_vpc.shop.id

  route {
    cidr_block     = "0.0.0.0/0"
    nat_gateway_id = aws_nat_gateway.nat.id
  }
}

resource "aws_route_table_association" "private" {
  count          = 2
  subnet_id      = aws_subnet.private[count.index].id
  route_table_id = aws_route_table.private.id
}

# ---- the cluster: control plane, add-ons, two nodes for what is not a GPU job

data "aws_iam_policy_document" "trust" {
  for_each = toset(["ec2", "eks", "pods.eks"])

  statement {
    actions = each.key == "pods.eks" ? ["sts:AssumeRole", "sts:TagSession"] : ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["${each.key}.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "control_plane" {
  name_prefix        = "shop-control-plane-"
  assume_role_policy = data.aws_iam_policy_document.trust["eks"].json
}

resource "aws_iam_role_policy_attachment" "control_plane" {
  role       = aws_iam_role.control_plane.name
  policy_arn = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
}

resource "aws_iam_role" "nodes" {
  name               = "shop-nodes"
  assume_role_policy = data.aws_iam_policy_document.trust["ec2"].json
}

resource "aws_iam_role_policy_attachment" "nodes" {
  for_each   = toset(["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"])
  role       = aws_iam_role.nodes.name
  policy_arn = "arn:aws:iam::aws:policy/${each.key}"
}

resource "aws_eks_cluster" "shop" {
  name                          = "shop"
  role_arn                      = aws_iam_role.control_plane.arn
  version                       = "1.35"
  bootstrap_self_managed_addons = false

  access_config {
    authentication_mode                         = "API"
    bootstrap_cluster_creator_admin_permissions = true
  }

  vpc_config {
    subnet_ids              = aws_subnet.private[*].id
    endpoint_private_access = true
    endpoint_public_access  = true
  }

  depends_on = [aws_iam_role_policy_attachment.control_plane]
}

resource "aws_eks_addon" "before" {
  for_each     = toset(["vpc-cni", "kube-proxy", "eks-pod-identity-agent"])
  cluster_name = aws_eks_cluster.shop.name
  addon_name   = each.key
}

resource "aws_eks_node_group" "system" {
  cluster_name    = aws_eks_cluster.shop.name
  node_group_name = "system"
  node_role_arn   = aws_iam_role.nodes.arn
  subnet_ids      = aws_subnet.private[*].id
  instance_types  = ["m7i.xlarge"]

  scaling_config {
    desired_size = 2
    min_size     = 2
    max_size     = 2
  }

  depends_on = [
    aws_eks_addon.before,
    aws_iam_role_policy_attachment.nodes,
    aws_route_table_association.private,
  ]
}

resource "aws_eks_addon" "dns" {
  cluster_name = aws_eks_cluster.shop.name
  addon_name   = "coredns"
  depends_on   = [aws_eks_node_group.system]
}

# ---- Karpenter, and what its nodes are

resource "aws_iam_role" "karpenter" {
  name               = "shop-karpenter"
  assume_role_policy = data.aws_iam_policy_document.trust["pods.eks"].json
}

resource "aws_iam_policy" "karpenter" {
  name = "shop-karpenter"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["ec2:*", "eks:DescribeCluster", "pricing:GetProducts", "ssm:GetParameter"]
        Resource = "*"
      },
      {
        Effect   = "Allow"
        Action   = ["iam:*InstanceProfile*"]
        Resource = "arn:aws:iam::${data.aws_caller_identity.current.account_id}:instance-profile/*"
      },
      {
        Effect   = "Allow"
        Action   = ["iam:ListInstanceProfiles", "iam:PassRole"]
        Resource = "*"
      },
    ]
  })
}

resource "aws_iam_role_policy_attachment" "karpenter" {
  role       = aws_iam_role.karpenter.name
  policy_arn = aws_iam_policy.karpenter.arn
}

resource "aws_eks_pod_identity_association" "karpenter" {
  cluster_name    = aws_eks_cluster.shop.name
  namespace       = "kube-system"
  service_account = "karpenter"
  role_arn        = aws_iam_role.karpenter.arn
  depends_on      = [aws_iam_role_policy_attachment.karpenter]
}

# Terraform's providers of Helm and Kubernetes need more than this test wants to bring: the programs
# themselves do the same.
resource "terraform_data" "charts" {
  input = { region = var.region, cluster = aws_eks_cluster.shop.name }

  provisioner "local-exec" {
    command = <<-EOT
      set -e
      aws eks update-kubeconfig --region ${var.region} --name ${aws_eks_cluster.shop.name}
      helm install karpenter ${var.charts}/karpenter --namespace kube-system --wait \
        --set settings.clusterName=${aws_eks_cluster.shop.name} \
        --set settings.clusterEndpoint=${aws_eks_cluster.shop.endpoint} \
        --set settings.disableDryRun=true \
        --set controller.env[0].name=AWS_REGION --set controller.env[0].value=${var.region}
      helm install nvidia-device-plugin ${var.charts}/nvidia-device-plugin --namespace kube-system \
        --wait --set tolerations[0].operator=Exists
    EOT
  }

  provisioner "local-exec" {
    when    = destroy
    command = <<-EOT
      set -e
      aws eks update-kubeconfig --region ${self.input.region} --name ${self.input.cluster}
      helm uninstall karpenter --namespace kube-system --wait
      helm uninstall nvidia-device-plugin --namespace kube-system --wait
    EOT
  }

  depends_on = [
    aws_eks_addon.dns,
    aws_eks_pod_identity_association.karpenter,
    aws_route_table_association.private,
  ]
}

resource "terraform_data" "pod" {
  input = { manifest = templatefile("${path.module}/gpu.yaml", {
    role  = aws_iam_role.nodes.name
    group = aws_eks_cluster.shop.vpc_config[0].cluster_security_group_id
  }) }

  provisioner "local-exec" {
    command = <<-EOT
      set -e
      printf '%s' "$MANIFEST" | kubectl apply --filename -
      kubectl wait nodepool/gpu --for=condition=Ready --timeout=5m
      kubectl wait pod/hello --for=condition=Ready --timeout=5m
    EOT

    environment = { MANIFEST = self.input.manifest }
  }

  provisioner "local-exec" {
    when    = destroy
    command = "kubectl delete pod/hello nodepool/gpu ec2nodeclass/gpu --timeout=10m"
  }

  depends_on = [terraform_data.charts]
}

output "pod" {
  value = "hello"
}
