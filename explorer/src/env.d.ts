declare module "*.tex" {
  const math: string;
  export default math;
}
